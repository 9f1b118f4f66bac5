// Package telemetry has the metrics and the traces of a controller: counters of
// what the loop, the providers and the cluster API do, and gauges of the stack that
// are read from the last snapshot at each scrape. It serves nothing and decides
// nothing.
//
// Start with [Telemetry]; metrics.go has the names of the counters, stack.go those
// of the gauges, trace.go the spans.
package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"google.golang.org/grpc"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// Telemetry has the metrics and the traces of a controller.
type Telemetry struct {
	metrics *metrics
	tracer  *tracer
	source  Source
}

// New makes them. The metrics of the stack come from a source; traces go where the
// environment variables of OpenTelemetry say.
func New(ctx context.Context, version string, source Source) (*Telemetry, error) {
	t, err := newTracer(ctx, version)
	if err != nil {
		return nil, err
	}
	return &Telemetry{metrics: newMetrics(source, version), tracer: t, source: source}, nil
}

// Providers returns providers whose calls are counted and traced.
func (t *Telemetry) Providers(all map[schema.ProviderName]providers.Provider) map[schema.ProviderName]providers.Provider {
	watched := make(map[schema.ProviderName]providers.Provider, len(all))
	for name, p := range all {
		watched[name] = instrument(name, p, t.metrics, t.tracer)
	}
	return watched
}

// Looked notes how long the parts of a step took.
func (t *Telemetry) Looked(timing apply.Timing) {
	t.metrics.looked(timing)
	t.tracer.timed(timing)
}

// Notified counts a delivery of a notice that ended.
func (t *Telemetry) Notified(of schema.Address, to schema.Receiver, result string) {
	t.metrics.notified(of.Scoped(), string(to), result)
}

// Led counts a time of leading.
func (t *Telemetry) Led() { t.metrics.leases.Inc() }

// Step runs a step, counts it and traces it.
func (t *Telemetry) Step(ctx context.Context, step func(context.Context) (time.Duration, error)) (time.Duration, error) {
	began := time.Now()
	ctx, ended := t.tracer.begin(ctx)
	next, err := step(ctx)
	ended(err)
	t.metrics.stepped(time.Since(began), err)
	return next, err
}

// Acted counts an action.
func (t *Telemetry) Acted(a plan.Action, err error) {
	t.metrics.acted(a, err)
}

// Handler answers with the metrics.
func (t *Telemetry) Handler() http.Handler {
	return t.metrics.handler()
}

// Store adds the requests of this process to the store, if the store bills them.
func (t *Telemetry) Store(s store.Store) {
	if billed, ok := store.AsBilled(s); ok {
		t.metrics.registry.MustRegister(newStoreCollector(t.source, billed))
	}
}

// Text is the metrics in the text format of Prometheus.
func (t *Telemetry) Text() (string, error) { return t.metrics.text() }

// LiveHosts adds the number of hosts that report by streams to the metrics, and that of streams.
func (t *Telemetry) LiveHosts(hosts, streams func() int) {
	t.metrics.gauge("fray_hosts_live", "Hosts that report to this controller by streams.", func() float64 { return float64(hosts()) })
	t.metrics.gauge("fray_host_streams", "Streams of hosts to this controller: the first host of a slice speaks for the others.", func() float64 { return float64(streams()) })
}

// Endpoints adds the number of registered endpoints to the metrics.
func (t *Telemetry) Endpoints(count func() int) {
	t.metrics.gauge("fray_endpoints", "Endpoints of actors that are registered.", func() float64 { return float64(count()) })
}

// Unary counts calls of the cluster API, rejected ones too.
func (t *Telemetry) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	called := t.metrics.calling(info.FullMethod)
	resp, err := handler(ctx, req)
	called(err)
	return resp, err
}

// Stream is Unary for streams.
func (t *Telemetry) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	called := t.metrics.calling(info.FullMethod)
	err := handler(srv, ss)
	called(err)
	return err
}

// Close sends the spans that were not sent yet.
func (t *Telemetry) Close(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := t.tracer.end(ctx); err != nil {
		log.Warn("send the last traces", "error", err.Error())
	}
}
