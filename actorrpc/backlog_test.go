package actorrpc

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/actorrpc/resolver"
)

// Calls that are made without waiting pile up only so far while their actor is being
// looked for, in number and in bytes; then their maker waits until it is found,
// or the call is over.
func TestBacklog(t *testing.T) {
	const calls, kib = 20, 1 << 10
	bounds := map[string]struct {
		maxCalls int
		maxBytes uint64
		made     int64 // before one waits
	}{
		"by number": {7, 1 << 30, 7}, "by bytes": {1 << 30, 4 * kib, 3},
	}
	ends := map[string]func(w *world, r *resolver.Local, give context.CancelFunc){
		"it is found": func(w *world, r *resolver.Local, _ context.CancelFunc) {
			r.Set("counter", resolver.Endpoint{Address: home, Incarnation: w.processes[home].incarnation})
		},
		"the caller gives up": func(_ *world, _ *resolver.Local, give context.CancelFunc) { give() },
		"it is not found":     func(*world, *resolver.Local, context.CancelFunc) { time.Sleep(defaultResolve) },
	}
	for by, bound := range bounds {
		for name, end := range ends {
			t.Run(by+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.start(home)
					r := resolverAt(t, w, home)
					client := w.client(r, Config{})
					h := mustLookup(t, client, "counter")
					r.Set("counter")
					h.actor.queue.maxCalls, h.actor.queue.maxBytes = bound.maxCalls, bound.maxBytes
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var made atomic.Int64
					futures := make([]*Future[int], calls)
					finished := make(chan struct{})
					go func() {
						defer close(finished)
						for n := range futures {
							futures[n] = Go[int](ctx, h, "add", n, make([]byte, kib))
							made.Add(1)
						}
					}()
					synctest.Wait()
					if got := made.Load(); got != bound.made {
						t.Errorf("%d calls were made, want %d before their maker waits", got, bound.made)
					}
					end(w, r, cancel)
					synctest.Wait()
					if name == "it is not found" {
						cancel()
					}
					<-finished
					for n, f := range futures {
						_, err := f.Result(t.Context())
						if found := name == "it is found"; (err == nil) != found || ran(err) {
							t.Errorf("call %d: got error %v, want that it ran is %t", n, err, found)
						}
					}
					if left := h.actor.queue; left.bytes != 0 || len(left.calls) != 0 || left.drained != nil {
						t.Errorf("%d calls and %d bytes are left, and a caller waits: %t", len(left.calls), left.bytes, left.drained != nil)
					}
				})
			})
		}
	}
}
