package gcp

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/schema"
)

// The result of a creation long ago that was not asked for since is out of date: the
// slice is asked for anew.
func TestErrorThatIsNoNews(t *testing.T) {
	for name, test := range map[string]struct {
		listed bool          // until then
		after  time.Duration // it is asked about
		want   schema.ErrorKind
	}{
		"at once":                  {false, time.Second, schema.ErrorCapacity},
		"after it was elsewhere":   {false, time.Hour, ""},
		"as soon as it is missing": {true, time.Hour, schema.ErrorCapacity},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTPUService(t)
			now := time.Unix(0, 0)
			p := s.provider(t, func(c *Config) { c.Now = func() time.Time { return now } })
			spec := tpuSpec("one")
			if err := p.Create(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			now = now.Add(test.after)
			for range 2 { // once with it, once without
				if test.listed {
					if _, err := p.Inventory(t.Context(), "stack-a"); err != nil {
						t.Fatal(err)
					}
				}
				s.do(func() { clear(s.nodes) })
			}
			s.end(status.Error(codes.ResourceExhausted, "There is no more capacity in the zone"))
			err := p.Create(t.Context(), spec)
			if test.want != "" {
				wantKind(t, err, test.want)
				return
			}
			if err != nil || len(s.requests) != 2 || len(s.nodes) != 1 {
				t.Errorf("there were %d requests for %d nodes, and the error %v", len(s.requests), len(s.nodes), err)
			}
		})
	}
}

// A slice that is asked for in another zone instead has waited for its turn already.
func TestTurnIsKeptInAnotherZone(t *testing.T) {
	s := newTPUService(t)
	now := time.Unix(0, 0)
	p := s.provider(t, func(c *Config) { c.CreatesPerMinute, c.Now = 1, func() time.Time { return now } })
	numbered := func(index int) func(*schema.SliceSpec) { return func(s *schema.SliceSpec) { s.Index = index } }
	if err := p.Create(t.Context(), tpuSpec("zero")); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"one", "two"} {
		wantKind(t, p.Create(t.Context(), tpuSpec(name, numbered(1+i))), schema.ErrorRate)
	}
	elsewhere := func(s *schema.SliceSpec) { s.Zone = "us-east5-a" }
	for i, name := range []string{"one-there", "two-there"} {
		after := wantKind(t, p.Create(t.Context(), tpuSpec(name, numbered(1+i), elsewhere)), schema.ErrorRate)
		if want := time.Duration(1+i) * time.Minute; after != want {
			t.Errorf("%s waits for %s, want %s", name, after, want)
		}
	}
}
