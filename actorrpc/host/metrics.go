package host

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// metrics counts calls by actor and method. Names that callers made up are not
// among the labels.
type metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.CounterVec   // actor, method
	errors   *prometheus.CounterVec   // actor, method, code
	duration *prometheus.HistogramVec // actor, method
}

// series are those of one method; those that nothing was counted in are not there yet.
type series struct {
	once     sync.Once
	calls    prometheus.Counter
	duration prometheus.Observer
}

// buckets are in seconds: calls take from microseconds to hours.
func buckets() []float64 {
	return []float64{.00001, .00003, .0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10, 60, 600}
}

func newMetrics(source gaugeSource) *metrics {
	labels := []string{"actor", "method"}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		calls:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fray_actor_calls_total", Help: "Calls that were answered."}, labels),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fray_actor_errors_total", Help: "Calls that were answered with an error, by its code. Those to no actor or method have no name.",
		}, append(labels, "code")),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fray_actor_call_duration_seconds", Help: "From a call's arrival to its answer.", Buckets: buckets(),
		}, labels),
	}
	m.registry.MustRegister(m.calls, m.errors, m.duration, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &gauges{source})
	return m
}

// answered counts a call of a method that took so long; code is "" if it returned.
func (m *metrics) answered(s *series, actor, method string, took time.Duration, code string) {
	s.once.Do(func() {
		s.calls = m.calls.WithLabelValues(actor, method)
		s.duration = m.duration.WithLabelValues(actor, method)
	})
	s.calls.Inc()
	s.duration.Observe(took.Seconds())
	if code != "" {
		m.errors.WithLabelValues(actor, method, code).Inc()
	}
}

// unserved counts a call of no method that is known; actor is "" if that is not known either.
func (m *metrics) unserved(actor, code string) { m.errors.WithLabelValues(actor, "", code).Inc() }

// forget drops the series of an actor that is gone.
func (m *metrics) forget(name string) {
	labels := prometheus.Labels{"actor": name}
	m.calls.DeletePartialMatch(labels)
	m.errors.DeletePartialMatch(labels)
	m.duration.DeletePartialMatch(labels)
}

// gaugeSource is what gauges are read of when they are collected.
type gaugeSource interface {
	listActors(prefix string) []*wire.Actor
	connectionCount() int
	keptBytes() int64
}

// gauges are collected from the server.
type gauges struct{ source gaugeSource }

var _ prometheus.Collector = (*gauges)(nil)

func (g *gauges) pending() *prometheus.Desc {
	return prometheus.NewDesc("fray_actor_calls_pending", "Calls that wait or run.", []string{"actor"}, nil)
}

func (g *gauges) connections() *prometheus.Desc {
	return prometheus.NewDesc("fray_actor_connections", "Connections of clients that speak frames.", nil, nil)
}

func (g *gauges) kept() *prometheus.Desc {
	return prometheus.NewDesc("fray_actor_kept_replies_bytes", "Replies that their callers have not acknowledged.", nil, nil)
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	out <- g.pending()
	out <- g.connections()
	out <- g.kept()
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	for _, a := range g.source.listActors("") {
		out <- prometheus.MustNewConstMetric(g.pending(), prometheus.GaugeValue, float64(a.GetPending()), a.GetName())
	}
	out <- prometheus.MustNewConstMetric(g.connections(), prometheus.GaugeValue, float64(g.source.connectionCount()))
	out <- prometheus.MustNewConstMetric(g.kept(), prometheus.GaugeValue, float64(g.source.keptBytes()))
}
