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
	all := accounting.MonthOfAll(snap.Wanted, m, time.Now())
	sizes := map[string]float64{}
	for _, use := range all {
		sizes[use.Namespace] = use.Used.High
	}
	c.spenders.choose(sizes)
	spent, hourly, budget := tally{}, tally{}, tally{}
	for _, use := range all {
		name := otherLabel
		if c.spenders.has(use.Namespace) {
			name = use.Namespace
		}
		spent[[4]string{name, "low"}] += use.Used.Low
		spent[[4]string{name, "high"}] += use.Used.High
		hourly[[4]string{name, "low"}] += use.PerHour.Low
		hourly[[4]string{name, "high"}] += use.PerHour.High
		if use.Limit > 0 {
			budget[[4]string{name}] += use.Limit
		}
	}
	spent.send(c, out, c.descs.spent, 2)
	hourly.send(c, out, c.descs.hourly, 2)
	budget.send(c, out, c.descs.budget, 1)
}
