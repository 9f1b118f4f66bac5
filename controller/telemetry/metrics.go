package telemetry

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// metrics counts what the controller does. The state of the stack is not counted but
// read at each scrape, see [stackCollector]. No label has a value for each job,
// slice or user, and each has a bounded number of values, so that a large stack has as many
// series as a small one.
type metrics struct {
	registry *prometheus.Registry

	steps       *prometheus.CounterVec // outcome
	stepTime    prometheus.Histogram
	lookTime    prometheus.Histogram
	planTime    prometheus.Histogram
	saveTime    prometheus.Histogram
	lastStep    prometheus.Gauge
	actions     *prometheus.CounterVec   // verb, outcome
	provider    *prometheus.CounterVec   // provider, method, outcome
	providerDur *prometheus.HistogramVec // provider, method
	calls       *prometheus.CounterVec   // method, code
	callDur     *prometheus.HistogramVec // method
	inFlight    *prometheus.GaugeVec     // method
	differing   prometheus.Counter       // see [apply.Timing]
	leases      prometheus.Counter
	notices     *prometheus.CounterVec // notification, receiver, result
	receivers   bound                  // pairs of notification and receiver
}

// metricOutcome is how something ended: "ok", or the kind of its error.
type metricOutcome string

const (
	outcomeOK       metricOutcome = "ok"
	outcomeConflict metricOutcome = "conflict"
	outcomeError    metricOutcome = "error"
)

// stepBuckets and callBuckets are in seconds: a step takes milliseconds, a call
// to a cloud up to minutes.
func stepBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
}

func callBuckets() []float64 {
	return []float64{.001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
}

// newMetrics returns metrics of which the stack's come from the source.
func newMetrics(source Source, version string) *metrics {
	m := &metrics{
		receivers:   bound{most: mostReceivers},
		registry:    prometheus.NewRegistry(),
		steps:       counters("fray_steps_total", "Steps of the loop, by how they ended.", "outcome"),
		stepTime:    histogram("fray_step_duration_seconds", "How long steps took.", stepBuckets()),
		lookTime:    histogram("fray_look_duration_seconds", "How long steps looked at the world.", stepBuckets()),
		planTime:    histogram("fray_plan_duration_seconds", "How long steps planned.", stepBuckets()),
		saveTime:    histogram("fray_save_duration_seconds", "How long writes of the state took.", stepBuckets()),
		lastStep:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "fray_last_step_timestamp_seconds", Help: "When the last step ended well, in seconds since 1970."}),
		actions:     counters("fray_actions_total", "Actions carried out, by verb and how they ended: ok, or the kind of the error.", "verb", "outcome"),
		provider:    counters("fray_provider_calls_total", "Calls to providers, by how they ended: ok, or the kind of the error.", "provider", "method", "outcome"),
		providerDur: histograms("fray_provider_call_duration_seconds", "How long calls to providers took.", "provider", "method"),
		calls:       counters("fray_api_calls_total", "Calls of the cluster API, by method and gRPC code.", "method", "code"),
		callDur:     histograms("fray_api_call_duration_seconds", "How long calls of the cluster API took; streams until their end.", "method"),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fray_api_calls_in_flight", Help: "Calls of the cluster API that go on; those of Metadata/Watch are the watchers of endpoints.",
		}, []string{"method"}),
		leases: prometheus.NewCounter(prometheus.CounterOpts{Name: "fray_leases_taken_total", Help: "How often this process became the leader."}),
	}
	m.differing = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "fray_plan_differences_total", Help: "Jobs that a check found to be decided otherwise than earlier steps did: more than 0 is a defect of fray.",
	})
	m.notices = counters("fray_notices_total", "Deliveries of notices, by how they ended: sent, failed (and tried again), dropped.", "notification", "receiver", "result")
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "fray_build_info", Help: "1, with the version as a label.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build,
		m.steps, m.stepTime, m.lookTime, m.planTime, m.saveTime, m.lastStep, m.actions, m.provider, m.providerDur,
		m.calls, m.callDur, m.inFlight, m.leases, m.notices, m.differing, newStackCollector(source),
	)
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

func histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: callBuckets()}, labels)
}

// handler answers with all of them.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// text is all of them in the text format of Prometheus.
func (m *metrics) text() (string, error) {
	families, err := m.registry.Gather()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// gauge adds a number that is read at each scrape.
func (m *metrics) gauge(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// stepped notes one step.
func (m *metrics) stepped(took time.Duration, err error) {
	if err != nil {
		m.steps.WithLabelValues(string(outcomeError)).Inc()
		return
	}
	m.steps.WithLabelValues(string(outcomeOK)).Inc()
	m.stepTime.Observe(took.Seconds())
	m.lastStep.SetToCurrentTime()
}

func (m *metrics) looked(t apply.Timing) {
	m.lookTime.Observe(t.Observe.Seconds())
	m.planTime.Observe(t.Plan.Seconds())
	m.differing.Add(float64(t.Differing))
	for _, took := range []time.Duration{t.Save, t.Saved} {
		if took > 0 {
			m.saveTime.Observe(took.Seconds())
		}
	}
}

func (m *metrics) acted(a plan.Action, err error) {
	m.actions.WithLabelValues(string(a.Verb), string(outcomeOf(err))).Inc()
}

func (m *metrics) asked(name schema.ProviderName, method string, took time.Duration, err error) {
	m.provider.WithLabelValues(string(name), method, string(outcomeOf(err))).Inc()
	m.providerDur.WithLabelValues(string(name), method).Observe(took.Seconds())
}

// calling notes that a call of the cluster API begins; called, that it ended.
// method is a registered one: what clients make up reaches no interceptor.
func (m *metrics) calling(method string) (called func(error)) {
	began := time.Now()
	running := m.inFlight.WithLabelValues(method)
	running.Inc()
	return func(err error) {
		running.Dec()
		m.calls.WithLabelValues(method, status.Code(err).String()).Inc()
		m.callDur.WithLabelValues(method).Observe(time.Since(began).Seconds())
	}
}

// notified counts a delivery: of receivers beyond a number under one name.
func (m *metrics) notified(notification, receiver, result string) {
	notification, receiver = labelValue(notification), labelValue(receiver)
	if !m.receivers.admit(notification + "\x00" + receiver) {
		notification, receiver = otherLabel, otherLabel
	}
	m.notices.WithLabelValues(notification, receiver, result).Inc()
}

func outcomeOf(err error) metricOutcome {
	switch {
	case err == nil:
		return outcomeOK
	case errors.Is(err, store.ErrConflict):
		return outcomeConflict
	}
	if _, classified := errors.AsType[*providers.Error](err); classified {
		return metricOutcome(providers.KindOf(err))
	}
	return outcomeError
}
