package actorrpc

import (
	"errors"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// A call of an actor that is gone for good ends at once, with the cause; one of an actor
// that was never seen waits, as it may be yet to come.
func TestCallsOfTheDeadEnd(t *testing.T) {
	const death = `actor "counter" was deleted: job counter-1 was stopped by user ann`
	w := newWorld(t)
	r, names := clusterResolver(t)
	p := w.start(home)
	alive := endpoint(1, "counter")
	alive.Address, alive.ActorId = home, p.incarnation
	r.set(alive)
	client := w.client(names, Config{ResolveTimeout: time.Hour})
	counter := mustLookup(t, client, "counter")
	mustAdd(t, counter, 1)

	w.kill(home)
	r.set()
	waiting := Go[int](t.Context(), counter, "add", 2) // before it is known to be dead
	r.mu.Lock()
	r.death = death
	r.mu.Unlock()
	_, late := Call[int](t.Context(), counter, "add", 3)
	_, early := waiting.Result(t.Context())
	for when, err := range map[string]error{"before": early, "after": late} {
		e, ok := errors.AsType[*rpcerror.Error](err)
		if !ok || e.Code != rpcerror.CodeActorDead || e.Message != death || e.Ran {
			t.Errorf("a call made %s its death was recorded: %v, want %s and that it did not run", when, err, rpcerror.CodeActorDead)
		}
	}
	if got := w.ran(); len(got) != 1 {
		t.Errorf("calls %v ran, want the first alone", got)
	}

	_, err := client.Lookup(t.Context(), "counter")
	if e, ok := errors.AsType[*rpcerror.Error](err); !ok || e.Code != rpcerror.CodeUnknownActor || e.Message != `no actor "counter" is registered in namespace "rl": `+death {
		t.Errorf("looking it up: %v, want that there is none, and why", err)
	}
	passed := w.client(names, Config{ResolveTimeout: time.Hour, Namespace: "rl"})
	was := resolver.Endpoint{Name: "counter", Address: home}
	h, err := passed.Handle(codec.ActorRef{Name: "counter", Namespace: "rl", URL: was.URL()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Call[int](t.Context(), h, "add", 4); rpcerror.CodeOf(err) != rpcerror.CodeActorDead {
		t.Errorf("by a handle that was passed on: %v, want %s", err, rpcerror.CodeActorDead)
	}

	other := w.client(names, Config{ResolveTimeout: time.Hour, Namespace: "rl"})
	h, err = other.Handle(codec.ActorRef{Name: "counter", Namespace: "rl"})
	if err != nil {
		t.Fatal(err)
	}
	yet := Go[int](t.Context(), h, "add", 5)
	w.start(home)
	alive.ActorId = w.processes[home].incarnation
	r.set(alive)
	if _, err := yet.Result(t.Context()); err != nil {
		t.Errorf("of an actor that was yet to come: %v", err)
	}
}
