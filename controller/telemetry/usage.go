package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fray-ml/fray/controller/web"
)

// usage sums up what hosts have reported of their tasks.
func (c *stackCollector) usage(out chan<- prometheus.Metric, snap *web.Snapshot) {
	var cpu, memory, duty, duties, calls float64
	for _, hosts := range snap.Hosts {
		for i := range hosts {
			for _, used := range hosts[i].Usage {
				cpu, memory = cpu+used.CPU, memory+float64(used.Memory)
				if used.Duty != nil {
					duty, duties = duty+*used.Duty, duties+1
				}
				for _, a := range used.Actors {
					calls += a.Calls
				}
			}
		}
	}
	c.send(out, c.descs.cpu, cpu)
	c.send(out, c.descs.memory, memory)
	c.send(out, c.descs.calls, calls)
	if duties > 0 {
		c.send(out, c.descs.duty, duty/duties)
	}
}
