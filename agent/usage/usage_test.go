package usage

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"

	"github.com/fray-ml/fray/agent/usage/libtpu"
	"github.com/fray-ml/fray/state"
)

// libtpuServer serves the duty cycle of two chips.
type libtpuServer struct {
	libtpu.UnimplementedRuntimeMetricServiceServer
	asked []string
}

func (s *libtpuServer) GetRuntimeMetric(_ context.Context, r *libtpu.MetricRequest) (*libtpu.MetricResponse, error) {
	s.asked = append(s.asked, r.GetMetricName())
	if len(s.asked) > 1 {
		return nil, errors.New("the program has ended")
	}
	return &libtpu.MetricResponse{Metric: &libtpu.TPUMetric{Name: r.GetMetricName(), Metrics: []*libtpu.Metric{
		{Measure: &libtpu.Metric_Gauge{Gauge: &libtpu.Gauge{Value: &libtpu.Gauge_AsDouble{AsDouble: 90}}}},
		{Measure: &libtpu.Metric_Gauge{Gauge: &libtpu.Gauge{Value: &libtpu.Gauge_AsInt{AsInt: 50}}}},
	}}}, nil
}

// The duty cycle is the mean of the chips; where nothing answers there is none, and it is
// not asked for again at once.
func TestDutyCycle(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := &libtpuServer{}
	server := grpc.NewServer()
	libtpu.RegisterRuntimeMetricServiceServer(server, served)
	go func() { _ = server.Serve(l) }()
	defer server.Stop()
	c := chips{address: l.Addr().String()}
	got, err := c.read(t.Context())
	if err != nil || got == nil || *got != 0.7 {
		t.Fatalf("duty %v, %v; want 0.7", got, err)
	}
	if got := c.duty(t.Context()); got != nil {
		t.Errorf("duty %v after the end of the program", *got)
	}
	if got := c.duty(t.Context()); got != nil || len(served.asked) != 2 {
		t.Errorf("duty %v, asked %d times, want 2", got, len(served.asked))
	}
}

// What a program with Prometheus' own library exposes comes out as rates.
func TestActorRates(t *testing.T) {
	registry := prometheus.NewRegistry()
	labels := []string{"actor", "method"}
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fray_actor_calls_total"}, labels)
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fray_actor_errors_total"}, append(labels, "code"))
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "fray_actor_call_duration_seconds", Buckets: []float64{.1, 1}}, labels)
	registry.MustRegister(calls, failed, took)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()
	call := func(actor, method string, n int, seconds float64) {
		for range n {
			calls.WithLabelValues(actor, method).Inc()
			took.WithLabelValues(actor, method).Observe(seconds)
		}
	}
	var s scraper
	call("a", "get", 50, 0.05)
	was := s.counts(t.Context(), server.Listener.Addr().String())
	call("a", "get", 10, 0.05)
	call("a", "put", 10, 0.5)
	failed.WithLabelValues("a", "put", "APPLICATION").Add(4)
	call("b", "get", 2, 5)
	is := s.counts(t.Context(), server.Listener.Addr().String())
	got := rates(was, is, 2)
	if len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" {
		t.Fatalf("got %+v, want a and b", got)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s is %g, want %g", what, got, want)
		}
	}
	near("calls", got[0].Calls, 10)
	near("errors", got[0].Errors, 2)
	near("mean", got[0].Mean, 0.275)
	near("p50", got[0].P50, 0.1)
	near("p99", got[0].P99, 0.1+0.9*(19.8-10)/10)
	near("calls of b", got[1].Calls, 1)
	near("p99 of b, above all bounds", got[1].P99, 1)
	if again := rates(is, map[string]counts{"a": {calls: 3}}, 1); len(again) != 1 || again[0].Calls != 3 {
		t.Errorf("after a restart: %+v", again)
	}
	server.Close()
	if got := s.counts(t.Context(), server.Listener.Addr().String()); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

// A sample stands for a while, however often it is asked for.
func TestSamplesAreRare(t *testing.T) {
	n := 0
	s := &Sampler{Tasks: func(context.Context) []Task { n++; return []Task{{Slice: "a", Key: "k"}} }}
	for range 10 {
		if got := s.Sample(t.Context()); len(got) != 1 {
			t.Fatalf("got %v", got)
		}
	}
	if n != 1 {
		t.Errorf("%d samples, want 1", n)
	}
	s.at = time.Now().Add(-time.Hour)
	s.past["a"] = reading{key: "k", at: s.at}
	if s.Sample(t.Context()); n != 2 {
		t.Errorf("%d samples, want 2", n)
	}
	var none state.Usage
	if got := s.last["a"]; got.CPU != none.CPU || got.Duty != nil {
		t.Errorf("got %+v of a task without processes", got)
	}
}
