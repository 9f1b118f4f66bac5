package host

import (
	"context"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/resolver"
)

// traced begins a span, and calls another actor within it.
type traced struct {
	tracer trace.Tracer
	next   actorrpc.Handle
}

func (a *traced) First(ctx context.Context) error {
	ctx, span := a.tracer.Start(ctx, "first")
	defer span.End()
	_, err := actorrpc.Call[struct{}](ctx, a.next, "second")
	return err
}

func (a *traced) Second(ctx context.Context) {
	_, span := a.tracer.Start(ctx, "second")
	span.End()
}

// Spans of a program, of an actor that it calls and of one that this calls in turn are
// of one trace, each the child of the one before.
func TestSpans(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("actors")
	actors := map[string]any{"first": &traced{tracer: tracer}, "second": &traced{tracer: tracer}}
	s := started(t, Config{}, actors, Options{})
	names, err := resolver.NewFixed(s.Address())
	if err != nil {
		t.Fatal(err)
	}
	client := actorrpc.NewClient(names, actorrpc.Config{})
	defer func() { _ = client.Close() }()
	lookup := func(name string) actorrpc.Handle {
		h, err := client.Lookup(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	actors["first"].(*traced).next = lookup("second")
	for _, sampled := range []string{"01", "00"} {
		t.Run("flags "+sampled, func(t *testing.T) {
			recorder.Reset()
			const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
			ctx := actorrpc.WithTrace(t.Context(), "00-"+trace+"-"+span+"-"+sampled)
			if _, err := actorrpc.Call[struct{}](ctx, lookup("first"), "first"); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"second": "first", "first": ""}
			ids := map[string]string{"": span}
			ended := recorder.Ended()
			if sampled == "00" {
				if len(ended) != 0 {
					t.Errorf("%d spans of a trace that is not recorded", len(ended))
				}
				return
			}
			for _, s := range ended {
				ids[s.Name()] = s.SpanContext().SpanID().String()
			}
			for _, s := range ended {
				if got := s.Parent().SpanID().String(); got != ids[want[s.Name()]] || s.SpanContext().TraceID().String() != trace || !s.Parent().IsRemote() {
					t.Errorf("%s: parent %s of trace %s, remote %t; want %s of %s", s.Name(), got, s.SpanContext().TraceID(), s.Parent().IsRemote(), ids[want[s.Name()]], trace)
				}
			}
			if len(ended) != 2 {
				t.Errorf("%d spans, want those of two actors", len(ended))
			}
		})
	}
}

// A trace that is none is left out.
func TestMalformedTraces(t *testing.T) {
	for _, text := range []string{"", "00", "00-zz-11-01", "00-00000000000000000000000000000000-0000000000000000-01", "\x00"} {
		if got := trace.SpanContextFromContext(actorrpc.WithTrace(t.Context(), text)); got.IsValid() {
			t.Errorf("%q: got trace %s", text, got.TraceID())
		}
	}
}
