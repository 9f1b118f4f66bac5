package telemetry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/web"
	"github.com/fray-ml/fray/schema"
)

// spans collects what is exported to it, as an OpenTelemetry collector does.
type spans struct {
	mu   sync.Mutex
	got  []*otlp.Span
	from string // the service
}

func collect(t *testing.T) *spans {
	s := &spans{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err != nil || proto.Unmarshal(body, &request) != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("got %s with a body that is no export: %v", r.URL.Path, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, of := range request.ResourceSpans {
			for _, a := range of.Resource.Attributes {
				if a.Key == "service.name" {
					s.from = a.Value.GetStringValue()
				}
			}
			for _, scope := range of.ScopeSpans {
				s.got = append(s.got, scope.Spans...)
			}
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv(otlpEndpoint, server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
	return s
}

func (s *spans) named(t *testing.T, name string) *otlp.Span {
	t.Helper()
	i := slices.IndexFunc(s.got, func(span *otlp.Span) bool { return span.Name == name })
	if i < 0 {
		t.Fatalf("there is no span %q among %d", name, len(s.got))
	}
	return s.got[i]
}

func TestTracesAreExported(t *testing.T) {
	out := collect(t)
	seen, err := New(t.Context(), "1.2.3", web.Stack{State: access.NewSerializer()})
	if err != nil {
		t.Fatal(err)
	}
	provider := instrument(schema.ProviderGCP, &plainProvider{err: errors.New("no route")}, seen.metrics, seen.tracer)
	_, _ = seen.Step(t.Context(), func(ctx context.Context) (time.Duration, error) {
		_ = provider.Create(ctx, schema.SliceSpec{Name: "pool-0"})
		seen.Looked(apply.Timing{Observe: 20 * time.Millisecond, Plan: 5 * time.Millisecond, Actions: 2})
		return 0, nil
	})
	if err := seen.tracer.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	step, observe, plan := out.named(t, "step"), out.named(t, "observe"), out.named(t, "plan")
	if out.from != "fray" {
		t.Errorf("got service %q, want fray", out.from)
	}
	for _, child := range []string{"observe", "plan", "actions", "gcp.create"} {
		if string(out.named(t, child).ParentSpanId) != string(step.SpanId) {
			t.Errorf("%s is no part of the step", child)
		}
	}
	if took := time.Duration(observe.EndTimeUnixNano - observe.StartTimeUnixNano); took != 20*time.Millisecond || plan.StartTimeUnixNano != observe.EndTimeUnixNano {
		t.Errorf("observe took %v, plan began %v after it; want 20ms and at once", took, time.Duration(plan.StartTimeUnixNano-observe.EndTimeUnixNano))
	}
	if got := out.named(t, "gcp.create").Status.GetCode(); got != otlp.Status_STATUS_CODE_ERROR {
		t.Errorf("the call that failed has status %v", got)
	}
	if slices.ContainsFunc(out.got, func(s *otlp.Span) bool { return s.Name == "save" }) {
		t.Error("there is a span of a save that was none")
	}
}

func TestNoEndpointNoTraces(t *testing.T) {
	t.Setenv(otlpEndpoint, "")
	trace, err := newTracer(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, ended := trace.begin(t.Context())
	_, span := trace.call(ctx, "gcp", "create", "a")
	ended(nil)
	if span.IsRecording() || span.SpanContext().IsValid() {
		t.Error("spans are made without an endpoint")
	}
}
