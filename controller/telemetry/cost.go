package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fray-ml/fray/controller/web"
	"github.com/fray-ml/fray/plan/accounting"
)

type costDescs struct{ spent, hourly, budget *prometheus.Desc }

func costDescsOf(d func(name, help string, labels ...string) *prometheus.Desc) costDescs {
	return costDescs{
		spent:  d("fray_cost_month_dollars", "What a declared namespace has used in this calendar month (UTC), by the low and the high end of the estimate.", "namespace", "estimate"),
		hourly: d("fray_cost_hourly_dollars", "What an hour of a declared namespace costs now, by the low and the high end of the estimate.", "namespace", "estimate"),
		budget: d("fray_cost_budget_dollars", "What a namespace with a cost block may use in a calendar month.", "namespace"),
	}
}

// costs sends what declared namespaces have cost in this month: there are no more of them than
// a configuration declares.
func (c *stackCollector) costs(out chan<- prometheus.Metric, snap *web.Snapshot) {
	m := snap.Doc.Metering
	if m == nil {
		return
	}
	for _, use := range accounting.MonthOfAll(snap.Wanted, m, time.Now()) {
		c.send(out, c.descs.spent, use.Used.Low, use.Namespace, "low")
		c.send(out, c.descs.spent, use.Used.High, use.Namespace, "high")
		c.send(out, c.descs.hourly, use.PerHour.Low, use.Namespace, "low")
		c.send(out, c.descs.hourly, use.PerHour.High, use.Namespace, "high")
		if use.Limit > 0 {
			c.send(out, c.descs.budget, use.Limit, use.Namespace)
		}
	}
}
