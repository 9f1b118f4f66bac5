package actorrpc

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// counting counts what a resolver is asked.
type counting struct {
	resolver.Resolver
	moved    atomic.Pointer[resolver.Endpoint] // where names are now, of which no watcher is notified; nil: as in Resolver
	resolved atomic.Int64
}

func (c *counting) Resolve(ctx context.Context, name string) ([]resolver.Endpoint, error) {
	c.resolved.Add(1)
	if e := c.moved.Load(); e != nil {
		return []resolver.Endpoint{*e}, nil
	}
	return c.Resolver.Resolve(ctx, name)
}

// Fact 22: endpoints are gone on end, retry and host death: calls and lookups then fail, as unknown.
func TestFact22GoneEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(home)
		r := resolverAt(t, w, home)
		client := w.client(r, Config{ResolveTimeout: 5 * time.Second})
		h := mustLookup(t, client, "counter")
		mustAdd(t, h, 1)
		w.kill(home)
		r.Set("counter")
		r.Set("countess", resolver.Endpoint{Address: other})
		if _, err := client.Lookup(t.Context(), "counter"); rpcerror.CodeOf(err) != rpcerror.CodeUnknownActor {
			t.Errorf("looking it up: error is %v, want an unknown actor", err)
		}
		_, err := Call[int](t.Context(), h, "add", 2)
		e, ok := errors.AsType[*rpcerror.Error](err)
		if !ok || e.Code != rpcerror.CodeUnknownActor || e.Ran || len(e.Suggestions) != 1 || e.Suggestions[0] != "countess" {
			t.Errorf("calling it: error is %v, want an unknown actor near countess that did not run", err)
		}
	})
}

func mustLookup(t testing.TB, client *Client, name string) Handle {
	t.Helper()
	h, err := client.Lookup(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func mustAdd(t testing.TB, h Handle, n int) {
	t.Helper()
	if got, err := Call[int](t.Context(), h, "add", n); err != nil || got != n {
		t.Fatalf("call %d returned %d, %v", n, got, err)
	}
}

// Fact 23: namespaces are isolated.
func TestFact23Namespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(home).hello.Namespace = "rl"
		client := w.client(resolverAt(t, w, home), Config{Namespace: "vision"})
		_, err := Call[int](t.Context(), mustLookup(t, client, "counter"), "add", 1)
		if rpcerror.CodeOf(err) != rpcerror.CodeDenied || ran(err) {
			t.Errorf("error is %v, want that it is denied and did not run", err)
		}
		if _, err := client.Handle(codec.ActorRef{Name: "counter", Namespace: "rl"}); rpcerror.CodeOf(err) != rpcerror.CodeDenied {
			t.Errorf("a reference: error is %v, want that it is denied", err)
		}
		if len(w.ran()) > 0 {
			t.Errorf("ran %v, want nothing", w.ran())
		}
	})
}

// Fact 30: empty to present and dead to restarted resolution both succeed within the call's deadline.
func TestFact30ComesWithinTheDeadline(t *testing.T) {
	for _, test := range []struct {
		name     string
		dead     bool
		deadline time.Duration
		code     rpcerror.Code // "": it succeeds
	}{
		{"empty, then present", false, time.Minute, ""},
		{"dead, then restarted", true, time.Minute, ""},
		{"empty, too late", false, 10 * time.Second, rpcerror.CodeDeadline},
		{"dead, too late", true, 10 * time.Second, rpcerror.CodeDeadline},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start(home)
				r := resolverAt(t, w, home)
				client := w.client(r, Config{})
				h := mustLookup(t, client, "counter")
				mustAdd(t, h, 1)
				w.kill(home)
				if !test.dead {
					r.Set("counter")
				}
				timer := time.AfterFunc(20*time.Second, func() {
					r.Set("counter", resolver.Endpoint{Address: other, Incarnation: w.start(other).incarnation})
				})
				defer timer.Stop()
				_, err := Call[int](t.Context(), h, "add", 2, RPCOptions{Timeout: test.deadline})
				if rpcerror.CodeOf(err) != test.code || ran(err) {
					t.Errorf("error is %v, want code %q and that it did not run", err, test.code)
				}
			})
		})
	}
}

// Fact 30: after a final failure the next call resolves afresh.
func TestFact30ResolvesAfreshAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(home)
		r := &counting{Resolver: resolverAt(t, w, home)}
		client := w.client(r, Config{})
		h := mustLookup(t, client, "counter")
		mustAdd(t, h, 1)
		w.kill(home)
		synctest.Wait()
		began := time.Now()
		_, err := Call[int](t.Context(), h, "add", 2)
		if rpcerror.CodeOf(err) != rpcerror.CodeUnavailable || ran(err) {
			t.Fatalf("error is %v, want that no server answers", err)
		}
		if took := time.Since(began); took < defaultResolve || took > defaultResolve+time.Second {
			t.Errorf("it took %s, want %s", took, defaultResolve)
		}
		w.start(other)
		r.moved.Store(&resolver.Endpoint{Name: "counter", Address: other})
		before := r.resolved.Load()
		mustAdd(t, h, 3)
		if r.resolved.Load() == before {
			t.Error("the next call did not resolve")
		}
	})
}

// Fact 31: many detectors of one death cause one resolution and one connection.
func TestFact31OneResolution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		p.mute = true
		r := &counting{Resolver: resolverAt(t, w, home)}
		client := w.client(r, Config{Options: RPCOptions{Idempotent: true}})
		const callers = 100
		var done sync.WaitGroup
		for n := range callers {
			done.Go(func() {
				h := mustLookup(t, client, "counter")
				if got, err := Call[int](t.Context(), h, "add", n); err != nil || got != n {
					t.Errorf("call %d returned %d, %v", n, got, err)
				}
			})
		}
		synctest.Wait()
		w.mu.Lock()
		w.dials = 0
		w.mu.Unlock()
		r.resolved.Store(0)
		w.start(other)
		next := w.processes[other]
		w.mu.Lock()
		w.processes[home] = next // restarted at its address
		conns := p.conns
		w.mu.Unlock()
		r.moved.Store(&resolver.Endpoint{Name: "counter", Address: home, Incarnation: next.incarnation})
		for _, c := range conns {
			c.Close()
		}
		done.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if got := r.resolved.Load(); got != 1 || w.dials != 1 {
			t.Errorf("%d callers found one death: %d resolutions and %d connections, want 1 and 1", callers, got, w.dials)
		}
	})
}

// Fact 33: a group is ready at N of M.
func TestFact33WaitForGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, err := resolver.NewLocal(nil)
		if err != nil {
			t.Fatal(err)
		}
		client := w.client(r, Config{})
		go func() {
			time.Sleep(10 * time.Second)
			r.Set("pool", resolver.Endpoint{Address: home})
			time.Sleep(10 * time.Second)
			r.Set("pool", resolver.Endpoint{Address: home}, resolver.Endpoint{Address: other})
		}()
		began := time.Now()
		if h, err := client.WaitFor(t.Context(), "pool"); err != nil || h.Name() != "pool" || time.Since(began) > 11*time.Second {
			t.Errorf("got %v, %v after %s; want the first after 10 s", h, err, time.Since(began))
		}
		if handles, err := client.WaitForGroup(t.Context(), resolver.Group{Name: "pool", Count: 2}); err != nil || len(handles) != 2 {
			t.Errorf("got %v, %v; want 2", handles, err)
		}
		if _, err := client.WaitForGroup(t.Context(), resolver.Group{Name: "pool", Count: 3}); rpcerror.CodeOf(err) != rpcerror.CodeDeadline {
			t.Errorf("error is %v, want that there are 2 of 3 only", err)
		}
	})
}

// Calls to a silent server end by their deadlines, and it is told.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		p.mute = true
		client := w.client(resolverAt(t, w, home), Config{})
		h := mustLookup(t, client, "counter")
		began := time.Now()
		_, err := Call[int](t.Context(), h, "add", 1, RPCOptions{Timeout: 3 * time.Second})
		if e, ok := errors.AsType[*rpcerror.Error](err); !ok || e.Code != rpcerror.CodeDeadline || !e.Ran || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want that the deadline passed and it may have run", err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it took %s, want 3s", took)
		}
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(p.calls) != 1 || p.calls[0].GetTimeoutNs() != uint64(3*time.Second) {
			t.Errorf("the server saw %v, want one call with 3s left", p.calls)
		}
		if p.cancelled != 1 {
			t.Errorf("the server was told of %d cancellations, want 1", p.cancelled)
		}
	})
}

// What was acknowledged is said with the next call.
func TestAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		client := w.client(resolverAt(t, w, home), Config{})
		for n := 1; n <= 3; n++ {
			mustAdd(t, mustLookup(t, client, "counter"), n)
		}
		for i, c := range p.calls {
			if c.GetSeq() != uint64(i+1) || c.GetAcked() != uint64(i) {
				t.Errorf("call %d has seq %d and acked %d, want %d and %d", i, c.GetSeq(), c.GetAcked(), i+1, i)
			}
		}
	})
}

// A client does not have more calls on the way than its server takes, and Go waits for room.
func TestMaxPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		p.hello.MaxPending = 2
		p.mute = true
		client := w.client(resolverAt(t, w, home), Config{})
		h := mustLookup(t, client, "counter")
		futures := make([]*Future[int], 6)
		var made atomic.Int64
		var making sync.WaitGroup
		making.Go(func() {
			for i := range futures {
				futures[i] = Go[int](t.Context(), h, "add", i+1)
				made.Add(1)
				time.Sleep(time.Millisecond)
			}
		})
		time.Sleep(time.Second)
		if w.mu.Lock(); len(p.calls) != 2 {
			t.Errorf("%d calls are on the way, want 2", len(p.calls))
		}
		w.mu.Unlock()
		if got := made.Load(); got != 2 {
			t.Errorf("%d calls were made without waiting, want 2: the third waits", got)
		}
		w.mu.Lock()
		p.mute = false
		w.mu.Unlock()
		for seq := uint64(1); seq <= 2; seq++ {
			p.release(seq)
		}
		making.Wait()
		for i, f := range futures {
			if got, err := f.Result(t.Context()); err != nil || got != i+1 {
				t.Errorf("call %d returned %d, %v", i+1, got, err)
			}
		}
	})
}

// The first reply teaches a client of fixed addresses whom it calls.
func TestIncarnationIsLearnt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		r, err := resolver.NewFixed(home)
		if err != nil {
			t.Fatal(err)
		}
		client := w.client(r, Config{})
		h := mustLookup(t, client, "counter")
		mustAdd(t, h, 1)
		mustAdd(t, h, 2)
		if got := p.calls[1].GetIncarnation(); got != p.incarnation {
			t.Errorf("the second call is for incarnation %q, want %q", got, p.incarnation)
		}
		w.kill(home)
		next := w.start(home)
		mustAdd(t, h, 3)
		if got := next.calls[len(next.calls)-1].GetIncarnation(); got != "" {
			t.Errorf("after a restart the call is for incarnation %q, want whichever there is", got)
		}
	})
}
