package gcp

import (
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// A creation that was accepted is asked about, and not for again, until it ends.
func TestOpenOperationIsPolledOnce(t *testing.T) {
	s := newTPUService(t)
	p := s.provider(t)
	for range 3 {
		if err := p.Create(t.Context(), tpuSpec("one")); err != nil {
			t.Fatal(err)
		}
	}
	if created, polled := s.count("CreateNode"), s.count("GetOperation"); created != 1 || polled != 2 {
		t.Errorf("it was asked for %d times and about %d times, want 1 and 2", created, polled)
	}
}

// The rows of the facts' table that arise late: the creation was accepted, and
// its operation ends with them.
func TestLateErrors(t *testing.T) {
	for name, test := range map[string]struct {
		code codes.Code
		said string
		want schema.ErrorKind
	}{
		"stockout":               {codes.ResourceExhausted, "There is no more capacity in the zone \"us-west4-a\"; you can try in another zone", schema.ErrorCapacity},
		"stockout without words": {codes.ResourceExhausted, "", schema.ErrorCapacity},
		"quota":                  {codes.ResourceExhausted, "Quota limit 'TPUV5sPreemptibleLitepod' has been exceeded. Limit: 32 in region us-west4", schema.ErrorQuota},
		"reservation":            {codes.FailedPrecondition, "Insufficient reserved capacity", schema.ErrorReservation},
		"preempted":              {codes.InvalidArgument, "Operation is not supported while in state PREEMPTED", schema.ErrorPreempted},
		"passing":                {codes.Unavailable, "try again", schema.ErrorUnavailable},
		"internal":               {codes.Internal, "an internal error has occurred", schema.ErrorUnavailable},
		"invalid":                {codes.InvalidArgument, "the network does not exist", schema.ErrorInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTPUService(t)
			p := s.provider(t)
			spec := tpuSpec("one")
			if err := p.Create(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			s.do(func() { clear(s.nodes) })
			s.end(status.Error(test.code, test.said))
			wantKind(t, p.Create(t.Context(), spec), test.want, test.said)
			// Once: then it is asked for anew.
			wantAskedAnew(t, s, p, spec)
		})
	}
}

// An operation that cannot be asked for says nothing about the slice.
func TestOperationThatCannotBeAskedFor(t *testing.T) {
	s := newTPUService(t)
	p := s.provider(t)
	spec := tpuSpec("one")
	if err := p.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	s.do(func() {
		s.reject = func(string) error { return status.Error(codes.ResourceExhausted, "per minute") }
	})
	wantKind(t, p.Create(t.Context(), spec), schema.ErrorRate)
	s.do(func() { s.reject = nil })
	s.end(status.Error(codes.ResourceExhausted, "no more capacity in the zone"))
	wantKind(t, p.Create(t.Context(), spec), schema.ErrorCapacity)
}

// The service forgets operations, and an operation may end well though nothing
// came of it.
func TestOperationThatIsOver(t *testing.T) {
	for name, end := range map[string]func(*tpuService){
		"forgotten": func(s *tpuService) { s.do(func() { clear(s.operations); clear(s.byID) }) },
		"well":      func(s *tpuService) { s.end(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newTPUService(t)
			p := s.provider(t)
			spec := tpuSpec("one")
			if err := p.Create(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			s.do(func() { clear(s.nodes) })
			end(s)
			if err := p.Create(t.Context(), spec); err != nil || len(s.requests) != 1 { // what was made a moment ago is not read
				t.Errorf("got %v after %d requests", err, len(s.requests))
			}
			now := p.config.Now
			p.config.Now = func() time.Time { return now().Add(readMadeEvery) }
			wantAskedAnew(t, s, p, spec)
		})
	}
}

// wantAskedAnew creates what was asked for before and came to nothing: it is asked
// for a second time, under another id.
func wantAskedAnew(t *testing.T, s *tpuService, p *Provider, spec schema.SliceSpec) {
	t.Helper()
	if err := p.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if len(s.requests) != 2 || len(s.nodes) != 1 {
		t.Errorf("there were %d requests for %d nodes", len(s.requests), len(s.nodes))
	}
}

// The create operation may stay open for long: over a slice that serves, and
// over one that came and went.
func TestOperationThatOutlivesItsSlice(t *testing.T) {
	for _, state := range []tpuapi.Node_State{tpuapi.Node_CREATING, tpuapi.Node_READY} {
		t.Run(state.String(), func(t *testing.T) {
			s := newTPUService(t)
			p := s.provider(t)
			spec := tpuSpec("one")
			inventory := func() {
				if _, err := p.Inventory(t.Context(), "stack-a"); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Create(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			s.do(func() { s.node("one").State = state })
			inventory()
			s.do(func() { clear(s.nodes) })
			// A zone that was not listed has not lost its slices.
			s.do(func() { s.unreachable["nodes"] = []string{testZone} })
			inventory()
			if state == tpuapi.Node_CREATING {
				if err := p.Create(t.Context(), spec); err != nil || len(s.requests) != 1 {
					t.Errorf("it was asked for anew: %v %v", s.requests, err)
				}
			}
			s.do(func() { clear(s.unreachable) })
			inventory()
			wantAskedAnew(t, s, p, spec)
		})
	}
}

// A stockout may show as a node that is there for a while and goes away.
func TestStockoutOfASliceThatWasListed(t *testing.T) {
	s := newTPUService(t)
	p := s.provider(t)
	spec := tpuSpec("one")
	if err := p.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := p.Inventory(t.Context(), "stack-a"); err != nil {
			t.Fatal(err)
		}
		s.do(func() { clear(s.nodes) })
	}
	s.end(status.Error(codes.ResourceExhausted, "There is no more capacity in the zone"))
	wantKind(t, p.Create(t.Context(), spec), schema.ErrorCapacity)
}

// What was preempted during its creation is listed dead, deleted, and made anew;
// the old operation's error is not the new slice's.
func TestPreemptedDuringCreate(t *testing.T) {
	s := newTPUService(t)
	p := s.provider(t)
	spec := tpuSpec("one")
	if err := p.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	s.do(func() { s.node("one").State = tpuapi.Node_PREEMPTED })
	s.end(status.Error(codes.InvalidArgument, "Operation is not supported while in state PREEMPTED"))
	inventory, err := p.Inventory(t.Context(), "stack-a")
	if err != nil || inventory.Slices[0].Phase != schema.SliceDead || inventory.Slices[0].Cause != schema.ErrorPreempted {
		t.Fatalf("it is listed as %+v, %v", inventory.Slices, err)
	}
	if err := p.Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: "one"}); err != nil {
		t.Fatal(err)
	}
	s.do(func() { clear(s.nodes) })
	if err := p.Create(t.Context(), spec); err != nil {
		t.Errorf("making it anew: %v", err)
	}
	if len(s.nodes) != 1 {
		t.Errorf("there are %d nodes", len(s.nodes))
	}
}

func TestConcurrentCreatesAskOnce(t *testing.T) {
	s := newTPUService(t)
	p := s.provider(t)
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			if err := p.Create(t.Context(), tpuSpec("one")); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := s.count("CreateNode"); got != 1 {
		t.Errorf("it was asked for %d times", got)
	}
	if n := len(p.pending.byName); n != 1 {
		t.Errorf("%d are pending", n)
	}
}

// What is remembered of a slice is no more than its request, and goes with it.
func TestPendingIsForgotten(t *testing.T) {
	s := newTPUService(t)
	p := s.provider(t)
	if err := p.Create(t.Context(), tpuSpec("one")); err != nil {
		t.Fatal(err)
	}
	s.do(func() { s.node("one").State = tpuapi.Node_READY })
	if _, err := p.Inventory(t.Context(), "stack-a"); err != nil {
		t.Fatal(err)
	}
	if n := len(p.pending.byName); n != 0 {
		t.Errorf("%d are pending", n)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, config := range map[string]Config{
		"no project":     {},
		"project":        {Project: "a/b"},
		"https":          {Project: "acme", Endpoint: "https://127.0.0.1:1"},
		"path":           {Project: "acme", Endpoint: "http://127.0.0.1:1/tpu"},
		"no scheme":      {Project: "acme", Endpoint: "127.0.0.1:1"},
		"negative limit": {Project: "acme", CreatesPerMinute: -1},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := New(t.Context(), config)
			wantKind(t, err, schema.ErrorInvalid)
			if p != nil {
				t.Error("there is a provider")
			}
		})
	}
}

func TestNoCredentials(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/none.json")
	_, err := New(t.Context(), Config{Project: "acme"})
	wantKind(t, err, schema.ErrorPermission, "connect to Google Cloud", "gcloud auth application-default login")
}

// Something else of the same name is another request, which the service rejects,
// while the first goes on.
func TestOtherSpecIsAnotherRequest(t *testing.T) {
	s := newTPUService(t)
	p := s.provider(t)
	if err := p.Create(t.Context(), tpuSpec("one")); err != nil {
		t.Fatal(err)
	}
	wantKind(t, p.Create(t.Context(), tpuSpec("one", onDemand)), schema.ErrorConflict, "made otherwise")
	s.do(func() { clear(s.nodes) })
	s.end(status.Error(codes.ResourceExhausted, "no more capacity in the zone"))
	wantKind(t, p.Create(t.Context(), tpuSpec("one")), schema.ErrorCapacity)
}
