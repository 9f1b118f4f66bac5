package actorrpc

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceHeader is what W3C Trace Context calls the field that [wire.Call.Trace] has.
const traceHeader = "traceparent"

// traceOf is the trace that a context's span belongs to, as W3C traceparent; "" without one.
func traceOf(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, headers)
	return headers[traceHeader]
}

// WithTrace is a context in which spans, and calls of actors, belong to the trace of a
// W3C traceparent. One that is "" or malformed changes nothing.
func WithTrace(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceHeader: traceparent})
}
