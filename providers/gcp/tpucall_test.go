package gcp

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	gcpengine "github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/schema"
)

// Every call has an end of its own, and says in a header where it goes, as those
// of the official clients do.
func TestCallsAreBoundedAndRouted(t *testing.T) {
	s := newTPUService(t)
	seen := map[string][]string{}
	s.observe = func(ctx context.Context, method string) {
		end, ok := ctx.Deadline()
		if left := time.Until(end); !ok || left > gcpengine.CallLimit {
			t.Errorf("%s may take %v", method, left)
		}
		sent, _ := metadata.FromIncomingContext(ctx)
		seen[method] = sent.Get("x-goog-request-params")
	}
	p := s.provider(t)
	for _, each := range []schema.SliceSpec{tpuSpec("one"), tpuSpec("two", queuedSpec)} {
		for range 2 {
			if err := p.Create(t.Context(), each); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := p.Inventory(t.Context(), "stack-a"); err != nil {
		t.Fatal(err)
	}
	if err := p.Update(t.Context(), tpuSpec("one", live(schema.CloudLive{Tags: "x"}))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		if err := p.Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for method, want := range map[string]string{
		"CreateNode":           "parent=projects/acme/locations/us-west4-a",
		"CreateQueuedResource": "parent=projects/acme/locations/us-west4-a",
		"ListNodes":            "parent=projects/acme/locations/-",
		"ListQueuedResources":  "parent=projects/acme/locations/-",
		"GetNode":              "name=projects/acme/locations/us-west4-a/nodes/two",
		"GetQueuedResource":    "name=projects/acme/locations/us-west4-a/queuedResources/two",
		"DeleteNode":           "name=projects/acme/locations/us-west4-a/nodes/one",
		"DeleteQueuedResource": "name=projects/acme/locations/us-west4-a/queuedResources/two",
		"UpdateNode":           "node.name=projects/acme/locations/us-west4-a/nodes/one",
	} {
		key, target, _ := strings.Cut(want, "=")
		if want := key + "=" + url.QueryEscape(target); !slices.Contains(seen[method], want) {
			t.Errorf("%s has %v, want %s", method, seen[method], want)
		}
	}
	if seen["GetOperation"] == nil {
		t.Error("GetOperation was not called, or without where it goes")
	}
}

// A caller that gives up does not wait for the pause between two tries.
func TestReadsEndWithTheContext(t *testing.T) {
	s := newTPUService(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.reject = func(string) error {
		cancel()
		return status.Error(codes.Unavailable, "down")
	}
	_, err := s.provider(t, func(c *Config) { c.Backoff = time.Hour }).Inventory(ctx, "stack-a")
	wantKind(t, err, schema.ErrorUnavailable, "context canceled")
	if got := s.count("ListQueuedResources"); got != 1 {
		t.Errorf("it was asked for %d times", got)
	}
}
