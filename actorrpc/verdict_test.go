package actorrpc

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// coroner is a resolver which knows why an actor that it has not is gone.
type coroner struct {
	*resolver.Local

	mu      sync.Mutex
	problem *rpcerror.Error
	members []string // that were asked for
}

var _ resolver.Coroner = (*coroner)(nil)

// gone has the actor be nowhere from now on, for a cause.
func (r *coroner) gone(cause *rpcerror.Error) {
	r.mu.Lock()
	r.problem = &rpcerror.Error{Code: rpcerror.CodeUnknownActor, Message: "no actor \"counter\" is registered", Cause: cause}
	r.mu.Unlock()
	r.Set("counter")
}

func (r *coroner) Resolve(ctx context.Context, name string) ([]resolver.Endpoint, error) {
	found, err := r.Local.Resolve(ctx, name)
	if err != nil {
		return nil, r.Missing(ctx, name, "")
	}
	return found, nil
}

func (r *coroner) Missing(_ context.Context, _, member string) *rpcerror.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members = append(r.members, member)
	return r.problem
}

const died = `actor "counter" was deleted: job counter-1 was stopped by user ann`

var (
	dead      = &rpcerror.Error{Code: rpcerror.CodeActorDead, Message: died}
	undecided = &rpcerror.Error{Code: rpcerror.CodeStopping, Message: "its run is ending"}
)

// A call that is in flight when its actor dies for good may have run, and its error says both. A call
// of an actor that comes back, or may, ends as one that may have run. None is sent again.
func TestCallsInFlightAtADeath(t *testing.T) {
	for _, test := range []struct {
		name    string
		options RPCOptions
		causes  []*rpcerror.Error // that the resolver has one after the other, a second apart
		back    bool              // the actor registers again then
		want    bool              // it is known to be dead
		after   time.Duration
	}{
		{"dead for good", RPCOptions{}, []*rpcerror.Error{dead}, false, true, 0},
		{"dead for good, once that is decided", RPCOptions{}, []*rpcerror.Error{undecided, dead}, false, true, time.Second},
		{"dead for good, of a call that may run twice", RPCOptions{Idempotent: true}, []*rpcerror.Error{undecided, dead}, false, true, time.Second},
		{"it may come back", RPCOptions{}, []*rpcerror.Error{nil}, false, false, 0},
		{"it may come back, once that is decided", RPCOptions{}, []*rpcerror.Error{undecided, nil}, false, false, time.Second},
		{"it comes back", RPCOptions{}, []*rpcerror.Error{undecided}, true, false, time.Second},
		{"it is never decided", RPCOptions{}, []*rpcerror.Error{undecided}, false, false, verdictTime},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				p := w.start(home)
				p.methods = methodsFor(none)
				r := &coroner{Local: resolverAt(t, w, home)}
				h := mustLookup(t, w.client(r, Config{ResolveTimeout: time.Hour}), "counter")
				mustAdd(t, h, 1)
				synctest.Wait() // it knows the methods
				w.mu.Lock()
				p.mute = true
				w.mu.Unlock()
				f := Go[int](t.Context(), h, "add", 2, test.options)
				synctest.Wait()
				began := time.Now()
				w.kill(home)
				for i, cause := range test.causes {
					if i > 0 {
						time.Sleep(time.Second)
					}
					r.gone(cause)
					synctest.Wait()
				}
				if test.back {
					time.Sleep(time.Second)
					next := w.start(other)
					w.mu.Lock()
					next.methods = methodsFor(none)
					w.mu.Unlock()
					r.Set("counter", resolver.Endpoint{Address: other, Incarnation: next.incarnation})
				}
				_, err := f.Result(t.Context())
				e, ok := errors.AsType[*rpcerror.Error](err)
				if !ok || e.Code != rpcerror.CodeMaybeExecuted || !e.Ran || !errors.Is(err, &rpcerror.Error{Code: rpcerror.CodeMaybeExecuted}) {
					t.Fatalf("got %v, want that it may have run", err)
				}
				if is := errors.Is(err, &rpcerror.Error{Code: rpcerror.CodeActorDead}); is != test.want || rpcerror.IsActorDead(err) != test.want {
					t.Errorf("%v: is of a dead actor: %t, want %t", err, is, test.want)
				}
				if want := "counter.add: " + died + "; the call may have run"; test.want && err.Error() != want {
					t.Errorf("got %q, want %q", err, want)
				}
				if again := rpcerror.FromWire(e.Wire()); rpcerror.IsActorDead(again) != test.want || again.Code != e.Code || !again.Ran {
					t.Errorf("on the wire it becomes %+v", again)
				}
				if took := time.Since(began); took < test.after || took > test.after+time.Second {
					t.Errorf("it took %s, want about %s", took, test.after)
				}
				if got := w.ran(); !slices.Equal(got, []int{1, 2}) {
					t.Errorf("calls %v ran, want each once", got)
				}
			})
		})
	}
}

// A handle of one of several actors of a name ends its calls when that one is gone for good, though
// the others serve.
func TestCallsOfAMemberThatIsGone(t *testing.T) {
	w := newWorld(t)
	p := w.start(home)
	r := &coroner{Local: resolverAt(t, w, home)}
	one := resolver.Endpoint{Address: home, Incarnation: p.incarnation, Member: "counters-1/0"}
	two := resolver.Endpoint{Address: other, Incarnation: "x", Member: "counters-2/0"}
	r.Set("counter", two, one)
	handles, err := w.client(r, Config{ResolveTimeout: time.Hour}).LookupAll(t.Context(), "counter")
	if err != nil {
		t.Fatal(err)
	}
	mustAdd(t, handles[1], 1)
	r.gone(dead)
	r.Set("counter", two)
	w.kill(home)
	if _, err := Call[int](t.Context(), handles[1], "add", 2); !rpcerror.IsActorDead(err) || rpcerror.CodeOf(err) != rpcerror.CodeActorDead {
		t.Errorf("got %v, want that the actor is dead", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.members, "counters-1/0") {
		t.Errorf("asked for were %q, want the member", r.members)
	}
}
