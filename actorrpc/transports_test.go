package actorrpc

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/resolver"
)

// sizes are how many entries a client has.
func sizes(c *Client) (peers, actors int) {
	c.transports.mu.Lock()
	peers = len(c.transports.peers)
	c.transports.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	return peers, len(c.actors)
}

// A client that calls at ever new addresses does not remember all of them, and is the
// same as before to those that it calls all the time.
func TestUnusedAddressesAreForgotten(t *testing.T) {
	client := NewClient(pinned{}, Config{})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		client = w.client(resolverAt(t, w, home), Config{Keepalive: Keepalive{Idle: 5 * time.Minute}})
		steady := mustLookup(t, client, "counter")
		const addresses = 5 * maxUnused
		call := func(n, argument int) {
			t.Helper()
			h, err := client.Handle(codec.ActorRef{Name: "counter", URL: fmt.Sprintf("actor://10.1.0.1:%d/counter", n+1)})
			if err != nil {
				t.Fatal(err)
			}
			mustAdd(t, h, argument)
		}
		for n := range addresses {
			w.start(fmt.Sprintf("10.1.0.1:%d", n+1))
			call(n, n)
			mustAdd(t, steady, n)
			time.Sleep(10 * time.Second)
		}
		// In use are those of the last five minutes, at ten seconds each.
		const most = maxUnused + 60
		if peers, _ := sizes(client); peers > most {
			t.Errorf("%d addresses are remembered of %d, want at most %d", peers, addresses, most)
		}
		if got, callers := len(p.calls), len(p.ledgers); got != addresses || callers != 1 {
			t.Errorf("the process that is called all the time had %d calls of %d callers, want %d of 1", got, callers, addresses)
		}
		call(0, -1) // forgotten, and the same process still
		if old := w.processes["10.1.0.1:1"]; len(old.calls) != 2 || len(old.ledgers) != 2 {
			t.Errorf("it got %d calls of %d callers, want 2 of 2: calls that are numbered anew are another's", len(old.calls), len(old.ledgers))
		}
	})
	limit := time.Now().Add(time.Minute)
	for {
		runtime.GC()
		if _, actors := sizes(client); actors <= 1 {
			break
		} else if time.Now().After(limit) {
			t.Fatalf("%d actors are remembered, want at most the one of the name", actors)
		}
	}
}

// A process that comes back to an address where another was meanwhile gets calls under
// another name: it has those of the first stay.
func TestProcessesThatTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first := w.start(home)
		client := w.client(resolverAt(t, w, home), Config{})
		h, err := client.Handle(codec.ActorRef{Name: "counter", URL: "actor://" + home + "/counter"})
		if err != nil {
			t.Fatal(err)
		}
		mustAdd(t, h, 1)
		mustAdd(t, h, 2)
		w.kill(home)
		second := w.start(home)
		mustAdd(t, h, 3)
		w.kill(home)
		w.mu.Lock()
		w.processes[home] = first
		w.mu.Unlock()
		mustAdd(t, h, 4)
		mustAdd(t, h, 5)
		if len(first.calls) != 4 || len(second.calls) != 1 || len(first.ledgers) != 2 {
			t.Errorf("the first had %d calls of %d callers, the second %d; want 4 of 2 and 1", len(first.calls), len(first.ledgers), len(second.calls))
		}
	})
}

// An address of gRPC that was forgotten is connected to again.
func TestUnusedGRPCPeerIsForgotten(t *testing.T) {
	client := NewClient(pinned{}, Config{})
	defer func() { _ = client.Close() }()
	e := resolver.Endpoint{Name: "counter", Address: "127.0.0.1:1", GRPC: true}
	before, err := client.transports.to(e)
	if err != nil {
		t.Fatal(err)
	}
	g, ok := before.(*grpcPeer)
	if !ok {
		t.Fatalf("got %T, want one for gRPC", before)
	}
	c := newCall(newActor(client.transports, actorKey{name: "counter"}, pinned{}), request{})
	g.sent[&c.delivery] = &sending{}
	client.transports.retire(g)
	if now, err := client.transports.to(e); err != nil || now != before {
		t.Errorf("it was forgotten with a call on the way, %v", err)
	}
	delete(g.sent, &c.delivery)
	client.transports.retire(g)
	if g.submit(&c.delivery) {
		t.Error("one that was forgotten takes calls")
	}
	if err := before.ready(t.Context()); !errors.Is(err, errRetired) {
		t.Errorf("one that was forgotten is ready: %v", err)
	}
	if now, err := client.transports.to(e); err != nil || now == before {
		t.Errorf("it was not made again, %v", err)
	}
}

// A caller that asked for an address before it was forgotten asks again, rather than connect
// under a name that the next one does not know of.
func TestForgottenPeerTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(home)
		client := w.client(resolverAt(t, w, home), Config{})
		e := resolver.Endpoint{Name: "counter", Address: home}
		before, err := client.transports.to(e)
		if err != nil {
			t.Fatal(err)
		}
		client.transports.retire(client.transports.peers[home])
		if err := before.ready(t.Context()); !errors.Is(err, errRetired) {
			t.Errorf("one that was forgotten connects: %v", err)
		}
		again, err := client.transports.reach(t.Context(), e)
		if err != nil || again == before {
			t.Errorf("it was not made again, %v", err)
		}
		client.transports.retire(client.transports.peers[home])
		if now, err := client.transports.to(e); err != nil || now != again {
			t.Errorf("one with a connection was forgotten, %v", err)
		}
	})
}
