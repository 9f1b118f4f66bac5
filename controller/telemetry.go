package controller

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
)

// telemetry is what a controller tells of itself: metrics and traces.
type telemetry struct {
	metrics *metrics
	tracer  *tracer
}

func newTelemetry(ctx context.Context, version string, l *loop) (*telemetry, error) {
	t, err := newTracer(ctx, version)
	if err != nil {
		return nil, err
	}
	return &telemetry{metrics: newMetrics(l, version), tracer: t}, nil
}

// instrument returns the configuration with everything in it watched.
func (t *telemetry) instrument(cfg Config) Config {
	all := make(map[schema.ProviderName]providers.Provider, len(cfg.Providers))
	for name, p := range cfg.Providers {
		all[name] = instrument(name, p, t.metrics, t.tracer)
	}
	cfg.Providers, cfg.telemetry = all, t
	inner := cfg.Looked
	cfg.Looked = func(timing apply.Timing) {
		t.metrics.looked(timing)
		t.tracer.timed(timing)
		if inner != nil {
			inner(timing)
		}
	}
	return cfg
}

// step watches one step.
func (t *telemetry) step(ctx context.Context, step func(context.Context) (time.Duration, error)) (time.Duration, error) {
	if t == nil {
		return step(ctx)
	}
	began := time.Now()
	ctx, ended := t.tracer.begin(ctx)
	next, err := step(ctx)
	ended(err)
	t.metrics.stepped(time.Since(began), err)
	return next, err
}

func (t *telemetry) acted(a plan.Action, err error) {
	if t != nil {
		t.metrics.acted(a, err)
	}
}

// handler answers with the metrics.
func (t *telemetry) handler() http.Handler {
	if t == nil {
		return nil
	}
	return t.metrics.handler()
}

// registry has the endpoints counted that a server knows.
func (t *telemetry) registry(m *metadataServer) {
	if t == nil {
		return
	}
	t.metrics.gauge("fray_endpoints", "Endpoints of actors that are registered.", func() float64 {
		d := m.directory.Load()
		if d == nil {
			return 0
		}
		d.mu.RLock()
		defer d.mu.RUnlock()
		return float64(len(d.reg.byID))
	})
}

// unary and stream count calls of the cluster API, refused ones too.
func (t *telemetry) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if t == nil {
		return handler(ctx, req)
	}
	called := t.metrics.calling(info.FullMethod)
	resp, err := handler(ctx, req)
	called(err)
	return resp, err
}

func (t *telemetry) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if t == nil {
		return handler(srv, ss)
	}
	called := t.metrics.calling(info.FullMethod)
	err := handler(srv, ss)
	called(err)
	return err
}

// close sends the spans that were not sent yet.
func (t *telemetry) close(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := t.tracer.end(ctx); err != nil {
		log.Warn("send the last traces", "error", err.Error())
	}
}
