package actorrpc

import (
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// leaving makes a process take three calls and answer none of them, before it is told
// to refuse those of a number. Later ones it runs.
func leaving(p *process) (refuse chan<- uint64) {
	numbers := make(chan uint64, 10)
	p.raw = func(c net.Conn) {
		hello, err := readFrame(c, "")
		if err != nil {
			return
		}
		_ = writeFrame(c, &wire.Frame{Kind: &wire.Frame_Handshake{Handshake: p.hello}})
		go func() {
			for seq := range numbers {
				_ = writeFrame(c, &wire.Frame{Kind: &wire.Frame_Reply{Reply: &wire.Reply{Seq: seq, Error: rejectionOf(rpcerror.CodeStopping)}}})
			}
		}()
		for {
			f, err := readFrame(c, "")
			if err != nil || f.GetCall().GetSeq() > 3 && !p.handle(c, hello.GetHandshake().GetPeer(), f) {
				return
			}
			if ping := f.GetPing(); ping != nil {
				_ = writeFrame(c, &wire.Frame{Kind: &wire.Frame_Pong{Pong: &wire.Pong{Id: ping.GetId()}}})
			}
		}
	}
	return numbers
}

// Calls that an actor's former place refuses, in whatever order, run in theirs, and
// before those that were made after it moved.
func TestOrderWhenAnActorMoves(t *testing.T) {
	for name, order := range map[string][]uint64{"refused in order": {1, 2, 3}, "refused backwards": {3, 2, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				refuse := leaving(w.start(home))
				defer close(refuse)
				next := w.start(other)
				r := resolverAt(t, w, home)
				h := mustLookup(t, w.client(r, Config{}), "counter")
				var futures []*Future[int]
				for n := range 3 {
					futures = append(futures, Go[int](t.Context(), h, "add", n))
				}
				synctest.Wait()
				r.Set("counter", resolver.Endpoint{Address: other, Incarnation: next.incarnation})
				futures = append(futures, Go[int](t.Context(), h, "add", 3))
				for _, seq := range order {
					time.Sleep(time.Second)
					if got := w.ran(); len(got) > 0 {
						t.Errorf("ran %v, want none before the former place has refused all", got)
					}
					refuse <- seq
				}
				for _, f := range futures {
					if _, err := f.Result(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if got := w.ran(); !slices.Equal(got, []int{0, 1, 2, 3}) {
					t.Errorf("ran %v, want all in order", got)
				}
			})
		})
	}
}

// Calls that are refused by a server which has the actor again at once, as one does
// that registers it anew, are sent there in their order, not in that of the rejections.
func TestOrderWhenAnActorIsRegisteredAnew(t *testing.T) {
	for name, order := range map[string][]uint64{"refused in order": {1, 2, 3}, "refused backwards": {3, 2, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				refuse := leaving(w.start(home))
				defer close(refuse)
				h := mustLookup(t, w.client(resolverAt(t, w, home), Config{}), "counter")
				var futures []*Future[int]
				for n := range 3 {
					futures = append(futures, Go[int](t.Context(), h, "add", n))
				}
				synctest.Wait()
				for i, seq := range order {
					refuse <- seq
					time.Sleep(time.Second) // longer than a refused call waits by itself
					if got := w.ran(); len(got) > 0 && i < 2 {
						t.Errorf("ran %v after %d rejections, want none before the third", got, i+1)
					}
				}
				for _, f := range futures {
					if _, err := f.Result(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if got := w.ran(); !slices.Equal(got, []int{0, 1, 2}) {
					t.Errorf("ran %v, want all in order", got)
				}
			})
		})
	}
}

// A call that goes on at the former place holds up others for a while only.
func TestOvertaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		refuse := leaving(w.start(home))
		defer close(refuse)
		next := w.start(other)
		r := resolverAt(t, w, home)
		config := Config{Keepalive: Keepalive{Every: time.Hour, Patience: time.Hour}, ResolveTimeout: 5 * time.Hour}
		h := mustLookup(t, w.client(r, config), "counter")
		long := Go[int](t.Context(), h, "add", 1)
		synctest.Wait()
		r.Set("counter", resolver.Endpoint{Address: other, Incarnation: next.incarnation})
		began := time.Now()
		if _, err := Call[int](t.Context(), h, "add", 2); err != nil {
			t.Fatal(err)
		}
		if took, want := time.Since(began), 3*time.Hour; took < want || took > want+time.Minute {
			t.Errorf("the later call took %s, want %s", took, want)
		}
		long.Cancel()
		if got := w.ran(); !slices.Equal(got, []int{2}) {
			t.Errorf("ran %v, want the later call", got)
		}
	})
}
