package actorrpc

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

func TestArguments(t *testing.T) {
	base := RPCOptions{Timeout: time.Minute, Retries: 2}
	tests := []struct {
		name       string
		given      []any
		positional []any
		named      map[string]any
		options    RPCOptions
	}{
		{"none", nil, nil, nil, base},
		{"positional", []any{1, "two"}, []any{1, "two"}, nil, base},
		{"named", []any{1, Named{"by": 2}, Named{"at": 3}}, []any{1}, map[string]any{"by": 2, "at": 3}, base},
		{"options", []any{RPCOptions{Idempotent: true, Retries: -1}, 1}, []any{1}, nil, RPCOptions{Timeout: time.Minute, Retries: -1, Idempotent: true}},
		{"between", []any{1, RPCOptions{Timeout: time.Second}, 2, Named{"by": 3}, 4}, []any{1, 2, 4}, map[string]any{"by": 3}, RPCOptions{Timeout: time.Second, Retries: 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := slices.Clone(test.given)
			got := argumentsOf(test.given, base)
			if !cmp.Equal(got.positional, test.positional) && len(got.positional)+len(test.positional) > 0 || !cmp.Equal(got.named, test.named) || got.options != test.options {
				t.Errorf("got %+v, want %+v", got, test)
			}
			if !cmp.Equal(test.given, before) {
				t.Errorf("what was given is now %v", test.given)
			}
		})
	}
}

func TestParseURL(t *testing.T) {
	good := map[string]resolver.Endpoint{
		"10.0.0.1:7000":                 {Address: "10.0.0.1:7000"},
		"actor://host:1/counter":        {Address: "host:1", Name: "counter"},
		"actor://host:1/trainer/0":      {Address: "host:1", Name: "trainer/0"},
		"grpc://[::1]:65535/a%20name":   {Address: "[::1]:65535", Name: "a name", GRPC: true},
		"actor://host:1":                {Address: "host:1"},
		"localhost:7000":                {Address: "localhost:7000"},
		"grpc://host.example.org:443/x": {Address: "host.example.org:443", Name: "x", GRPC: true},
	}
	for text, want := range good {
		want.Member = want.Address
		got, err := resolver.ParseURL(text)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", text, got, err, want)
		}
		if again, err := resolver.ParseURL(got.URL()); err != nil || !cmp.Equal(again, got) {
			t.Errorf("%s: its URL is %s, which is %+v, %v", text, got.URL(), again, err)
		}
	}
	for _, text := range []string{"", "host", "host:0", "host:65536", "host:http", "http://host:1/x", "actor://host/x", "actor://u@host:1/x", "actor://host:1/x?y", "://"} {
		if e, err := resolver.ParseURL(text); err == nil || !strings.Contains(err.Error(), "want host:port") {
			t.Errorf("%q: got %+v, %v; want an error that says what is wanted", text, e, err)
		}
	}
}

func TestHandles(t *testing.T) {
	w := newWorld(t)
	r, err := resolver.NewLocal(map[string]string{"counter": home})
	if err != nil {
		t.Fatal(err)
	}
	client := w.client(r, Config{})
	a, b := mustLookup(t, client, "counter"), mustLookup(t, client, "counter")
	if a != b {
		t.Error("two handles of one name are not equal")
	}
	if a == a.With(RPCOptions{Retries: 1}) {
		t.Error("handles with other options are equal")
	}
	ref := a.ActorRef()
	if want := (codec.ActorRef{Name: "counter", URL: "actor://" + home + "/counter"}); ref != want {
		t.Errorf("it is sent as %+v, want %+v", ref, want)
	}
	c, err := client.Handle(ref)
	if err != nil || c.Name() != "counter" || c.ActorRef() != ref {
		t.Errorf("received: %v, %v; want the handle that was sent", c, err)
	}
	if d, err := client.Handle(ref); err != nil || d != c {
		t.Errorf("received twice: %v, %v; want equal handles", d, err)
	}
	for _, bad := range []codec.ActorRef{{}, {Name: "x", URL: "nowhere"}} {
		if h, err := client.Handle(bad); err == nil {
			t.Errorf("%+v is %v, want an error", bad, h)
		}
	}
	var zero Handle
	if _, err := Call[int](t.Context(), zero, "add"); rpcerror.CodeOf(err) != rpcerror.CodeBadArguments {
		t.Errorf("a handle of nothing: error is %v, want bad arguments", err)
	}
	if _, err := Go[int](t.Context(), zero, "add").Result(t.Context()); rpcerror.CodeOf(err) != rpcerror.CodeBadArguments {
		t.Errorf("a handle of nothing: error is %v, want bad arguments", err)
	}
	if _, err := client.Methods(t.Context(), zero); rpcerror.CodeOf(err) != rpcerror.CodeBadArguments {
		t.Errorf("the methods of a handle of nothing: error is %v, want bad arguments", err)
	}
	if n := zero.Pending(); n != 0 || zero.Name() != "" || zero.String() != "" {
		t.Errorf("a handle of nothing has %d calls, is %q, %q; want 0 and no names", n, zero.Name(), zero)
	}
	if _, err := client.Lookup(t.Context(), "conter"); rpcerror.CodeOf(err) != rpcerror.CodeUnknownActor || !strings.Contains(err.Error(), "did you mean counter?") {
		t.Errorf("error is %v, want an unknown actor near counter", err)
	}
}

func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first, second := w.start(home), w.start(other)
		first.actor, second.actor = "pool", "pool"
		r, err := resolver.NewLocal(nil)
		if err != nil {
			t.Fatal(err)
		}
		client := w.client(r, Config{})
		pool := client.Pool("pool")
		defer func() { _ = pool.Close() }()
		if _, err := pool.RoundRobin(t.Context()); rpcerror.CodeOf(err) != rpcerror.CodeUnknownActor {
			t.Errorf("an empty pool: error is %v, want an unknown actor", err)
		}
		at := func(p *process) resolver.Endpoint {
			return resolver.Endpoint{Address: addressOf(w, p), Incarnation: p.incarnation}
		}
		r.Set("pool", at(first), at(second))
		for n := range 10 {
			h, err := pool.RoundRobin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			mustAdd(t, h, n)
		}
		if len(first.calls) != 5 || len(second.calls) != 5 {
			t.Errorf("in turn: %d and %d calls, want 5 and 5", len(first.calls), len(second.calls))
		}
		w.mu.Lock()
		first.mute = true
		w.mu.Unlock()
		handles, err := pool.Handles(t.Context())
		if err != nil || len(handles) != 2 {
			t.Fatalf("got %v, %v; want 2 handles", handles, err)
		}
		Go[int](t.Context(), handles[0], "add", 10) // stays
		for n := range 10 {
			h, err := pool.LeastLoaded(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			mustAdd(t, h, 11+n)
		}
		if len(second.calls) != 15 {
			t.Errorf("the one without load got %d calls, want all 10 more", len(second.calls)-5)
		}
		answers := Broadcast[int](t.Context(), handles, "add", 99, RPCOptions{Timeout: time.Second})
		if answers[0].Handle != handles[0] || rpcerror.CodeOf(answers[0].Err) != rpcerror.CodeDeadline {
			t.Errorf("the silent one answered %+v, want that the deadline passed", answers[0])
		}
		if answers[1].Err != nil || answers[1].Result != 99 {
			t.Errorf("the other answered %+v, want 99", answers[1])
		}
		r.Set("pool", at(second))
		if handles, err := pool.Handles(t.Context()); err != nil || len(handles) != 1 {
			t.Errorf("after one has gone: %v, %v; want 1", handles, err)
		}
	})
}

func addressOf(w *world, p *process) string {
	for address, q := range w.processes {
		if p == q {
			return address
		}
	}
	return ""
}

// A member of a pool stays the one of its job's task, wherever that is now.
func TestMembersAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(home).actor, w.start(other).actor = "pool", "pool"
		r, err := resolver.NewLocal(nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Set("pool", resolver.Endpoint{Address: home, Member: "job/0"}, resolver.Endpoint{Address: other, Member: "job/1"})
		client := w.client(r, Config{ResolveTimeout: 5 * time.Second})
		handles, err := client.LookupAll(t.Context(), "pool")
		if err != nil || len(handles) != 2 {
			t.Fatalf("got %v, %v; want 2 handles", handles, err)
		}
		mustAdd(t, handles[0], 1)
		w.kill(home)
		const third = "10.0.0.3:7000"
		again := w.start(third)
		again.actor = "pool"
		r.Set("pool", resolver.Endpoint{Address: third, Member: "job/0"}, resolver.Endpoint{Address: other, Member: "job/1"})
		mustAdd(t, handles[0], 2)
		if len(again.calls) != 1 {
			t.Errorf("task 0 is elsewhere and got %d calls there, want 1", len(again.calls))
		}
		r.Set("pool", resolver.Endpoint{Address: other, Member: "job/1"})
		w.kill(third)
		if _, err := Call[int](t.Context(), handles[0], "add", 3); rpcerror.CodeOf(err) != rpcerror.CodeUnknownActor {
			t.Errorf("task 0 is gone: error is %v, want an unknown actor", err)
		}
		mustAdd(t, handles[1], 4)
	})
}

// A handle of one of several actors of a name stays with that one when it is sent, also
// through a program that knows no names; where it is received it is the handle of it.
func TestMembersTravel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(home).actor, w.start(other).actor = "pool", "pool"
		r, err := resolver.NewLocal(nil)
		if err != nil {
			t.Fatal(err)
		}
		second := resolver.Endpoint{Address: other, Member: "job/1"}
		r.Set("pool", resolver.Endpoint{Address: home, Member: "job/0"}, second)
		handles, err := w.client(r, Config{Namespace: "rl"}).LookupAll(t.Context(), "pool")
		if err != nil || len(handles) != 2 {
			t.Fatalf("got %v, %v; want 2 handles", handles, err)
		}
		sent := handles[0].ActorRef()
		if want := (codec.ActorRef{Name: "pool", Namespace: "rl", URL: "actor://" + home + "/pool", Member: "job/0"}); sent != want {
			t.Errorf("it is sent as %+v, want %+v", sent, want)
		}
		between, err := w.client(r, Config{}).Handle(sent)
		if err != nil || between.ActorRef() != sent {
			t.Errorf("passed on: %+v, %v; want %+v", between.ActorRef(), err, sent)
		}
		mustAdd(t, between, 1)
		receiver := w.client(r, Config{Namespace: "rl"})
		h, err := receiver.Handle(sent)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := receiver.LookupAll(t.Context(), "pool"); err != nil || found[0] != h {
			t.Errorf("the handle that was received is not that of the same member: %v, %v", found, err)
		}
		mustAdd(t, h, 2)
		w.kill(home)
		const third = "10.0.0.3:7000"
		again := w.start(third)
		again.actor = "pool"
		r.Set("pool", resolver.Endpoint{Address: third, Member: "job/0"}, second)
		if found, err := receiver.LookupAll(t.Context(), "pool"); err != nil || found[0].ActorRef().URL != "actor://"+third+"/pool" {
			t.Errorf("the handle of task 0 is sent as %+v, %v; want where it is now", found[0].ActorRef(), err)
		}
		mustAdd(t, h, 3)
		if len(again.calls) != 1 || len(w.processes[other].calls) != 0 {
			t.Errorf("task 0 got %d calls where it is now and task 1 %d, want 1 and 0", len(again.calls), len(w.processes[other].calls))
		}
	})
}

// A future may be waited for several times, and its result read again.
func TestFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		p.mute = true
		client := w.client(resolverAt(t, w, home), Config{})
		f := Go[int](t.Context(), mustLookup(t, client, "counter"), "add", 1)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := f.Result(short); !errors.Is(err, context.DeadlineExceeded) || rpcerror.CodeOf(err) != "" {
			t.Errorf("error is %v, want the context's: the call goes on", err)
		}
		select {
		case <-f.Done():
			t.Error("it is done")
		default:
		}
		p.release(1)
		for range 2 {
			if got, err := f.Result(t.Context()); err != nil || got != 1 {
				t.Errorf("got %d, %v; want 1", got, err)
			}
		}
		f.Cancel() // too late, and no harm
		if got, err := f.Result(t.Context()); err != nil || got != 1 {
			t.Errorf("got %d, %v; want 1", got, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		g := Go[int](ctx, mustLookup(t, client, "counter"), "add", 2)
		synctest.Wait()
		stop()
		if _, err := g.Result(t.Context()); rpcerror.CodeOf(err) != rpcerror.CodeCancelled || !ran(err) {
			t.Errorf("error is %v, want that it was cancelled and may have run", err)
		}
	})
}

func TestWindow(t *testing.T) {
	var w window
	calls := make([]*delivery, 5)
	for i := range calls {
		calls[i] = &delivery{}
		if w.add(calls[i]); calls[i].seq != uint64(i+1) {
			t.Errorf("call %d has number %d", i, calls[i].seq)
		}
	}
	for _, bad := range []uint64{0, 6, 1 << 63} {
		if c := w.take(bad); c != nil {
			t.Errorf("took call %d", bad)
		}
	}
	for _, step := range []struct{ take, acked uint64 }{{2, 0}, {1, 2}, {4, 2}, {3, 4}, {5, 5}} {
		if c := w.take(step.take); c != calls[step.take-1] || w.has(c) {
			t.Errorf("took %v for number %d", c, step.take)
		}
		if w.take(step.take) != nil {
			t.Errorf("took number %d twice", step.take)
		}
		if w.acked != step.acked {
			t.Errorf("after %d: acked up to %d, want %d", step.take, w.acked, step.acked)
		}
	}
	if w.open != 0 || len(w.all()) != 0 || w.last() != 5 {
		t.Errorf("at the end %d are open, last is %d; want 0 and 5", w.open, w.last())
	}
}
