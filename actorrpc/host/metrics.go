package host

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
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

func newMetrics(s *Server) *metrics {
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
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &standing{server: s})
	return m
}

// answered counts a call; failure is nil if it returned.
func (m *metrics) answered(c *call, failure *wire.Error) {
	code := ""
	if failure != nil {
		code = string(rpcerror.FromWire(failure).Code)
	}
	if c.method == nil {
		name := ""
		if c.actor != nil {
			name = c.actor.name
		}
		m.errors.WithLabelValues(name, "", code).Inc()
		return
	}
	a, s := c.actor, &c.method.series
	a.pending.Add(-1)
	a.calls.Add(1)
	s.once.Do(func() {
		s.calls = m.calls.WithLabelValues(a.name, c.method.name)
		s.duration = m.duration.WithLabelValues(a.name, c.method.name)
	})
	s.calls.Inc()
	s.duration.Observe(time.Since(c.arrived).Seconds())
	if failure != nil {
		a.errors.Add(1)
		m.errors.WithLabelValues(a.name, c.method.name, code).Inc()
	}
}

// forget drops the series of an actor that is gone.
func (m *metrics) forget(name string) {
	labels := prometheus.Labels{"actor": name}
	m.calls.DeletePartialMatch(labels)
	m.errors.DeletePartialMatch(labels)
	m.duration.DeletePartialMatch(labels)
}

// standing reads how the server stands when somebody asks.
type standing struct{ server *Server }

var _ prometheus.Collector = (*standing)(nil)

func (s *standing) pending() *prometheus.Desc {
	return prometheus.NewDesc("fray_actor_calls_pending", "Calls that wait or run.", []string{"actor"}, nil)
}

func (s *standing) connections() *prometheus.Desc {
	return prometheus.NewDesc("fray_actor_connections", "Connections of clients that speak frames.", nil, nil)
}

func (s *standing) kept() *prometheus.Desc {
	return prometheus.NewDesc("fray_actor_kept_replies_bytes", "Replies that their callers have not acknowledged.", nil, nil)
}

// Describe implements prometheus.Collector.
func (s *standing) Describe(out chan<- *prometheus.Desc) {
	out <- s.pending()
	out <- s.connections()
	out <- s.kept()
}

// Collect implements prometheus.Collector.
func (s *standing) Collect(out chan<- prometheus.Metric) {
	for _, a := range s.server.listActors("") {
		out <- prometheus.MustNewConstMetric(s.pending(), prometheus.GaugeValue, float64(a.GetPending()), a.GetName())
	}
	out <- prometheus.MustNewConstMetric(s.connections(), prometheus.GaugeValue, float64(s.server.connectionCount()))
	out <- prometheus.MustNewConstMetric(s.kept(), prometheus.GaugeValue, float64(s.server.ledger.keptBytes()))
}
