package telemetry

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/fray-ml/fray/apply"
)

// Variables that configure where traces go; the exporter itself
// reads the others of the specification (headers, timeouts, certificates). It
// speaks OTLP over HTTP.
const (
	otlpEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	otlpTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
)

// tracer makes spans of steps and of calls to providers. Without an endpoint it
// makes none, at no cost.
type tracer struct {
	trace.Tracer
	end func(context.Context) error

	mu   sync.Mutex
	step stepSpan
}

// stepSpan is the step that goes on.
type stepSpan struct {
	ctx    context.Context
	began  time.Time
	timing *apply.Timing // nil: its parts are not known
}

// newTracer returns a tracer to the endpoint that the environment names.
func newTracer(ctx context.Context, version string) (*tracer, error) {
	if os.Getenv(otlpEndpoint) == "" && os.Getenv(otlpTracesEndpoint) == "" {
		return &tracer{Tracer: noop.NewTracerProvider().Tracer("fray"), end: func(context.Context) error { return nil }}, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("export traces to %s: %w", os.Getenv(otlpEndpoint), err)
	}
	return tracerTo(sdk.WithBatcher(exporter), version), nil
}

func tracerTo(to sdk.TracerProviderOption, version string) *tracer {
	// The defaults come first: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
	about, err := resource.Merge(
		resource.NewSchemaless(attribute.String("service.name", "fray"), attribute.String("service.version", version)),
		resource.Environment())
	if err != nil {
		about = resource.NewSchemaless(attribute.String("service.name", "fray"))
	}
	provider := sdk.NewTracerProvider(to, sdk.WithResource(about))
	return &tracer{Tracer: provider.Tracer("github.com/fray-ml/fray/controller"), end: provider.Shutdown}
}

// begin starts the span of a step. What the step calls is to be given the
// context; ended is called with what came of it.
func (t *tracer) begin(ctx context.Context) (_ context.Context, ended func(error)) {
	began := time.Now()
	ctx, span := t.Start(ctx, "step", trace.WithTimestamp(began))
	t.mu.Lock()
	t.step = stepSpan{ctx: ctx, began: began}
	t.mu.Unlock()
	return ctx, func(err error) {
		t.mu.Lock()
		step := t.step
		t.step = stepSpan{}
		t.mu.Unlock()
		if span.IsRecording() && step.timing != nil {
			t.parts(step)
			span.SetAttributes(attribute.Int("fray.actions", step.timing.Actions))
		}
		finishSpan(span, err)
	}
}

// timed notes how long the parts of the present step took.
func (t *tracer) timed(timing apply.Timing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.step.timing = &timing
}

// parts makes spans of the parts of a step, which follow each other.
func (t *tracer) parts(s stepSpan) {
	at := s.began
	for _, part := range []struct {
		name string
		took time.Duration
	}{{"observe", s.timing.Observe}, {"plan", s.timing.Plan}, {"save", s.timing.Save}} {
		if part.took == 0 {
			continue
		}
		_, span := t.Start(s.ctx, part.name, trace.WithTimestamp(at))
		at = at.Add(part.took)
		span.End(trace.WithTimestamp(at))
	}
	_, span := t.Start(s.ctx, "actions", trace.WithTimestamp(at), trace.WithAttributes(attribute.Int("fray.actions", s.timing.Actions)))
	span.End()
}

// call starts the span of a call to a provider.
func (t *tracer) call(ctx context.Context, provider, method, slice string) (context.Context, trace.Span) {
	attributes := []attribute.KeyValue{attribute.String("fray.provider", provider)}
	if slice != "" {
		attributes = append(attributes, attribute.String("fray.slice", slice))
	}
	return t.Start(ctx, provider+"."+method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
}

func finishSpan(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, string(outcomeOf(err)))
	}
	span.End()
}
