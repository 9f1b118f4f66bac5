package actorrpc

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// A server that falls silent is found by keepalive, of 10 s and 1 s here. Within a second more its
// calls fail, or go to where the actor is: they do not wait until it cannot be resolved.
func TestCallsOfASilentServer(t *testing.T) {
	for _, test := range []struct {
		name    string
		options RPCOptions
		moved   bool
		code    rpcerror.Code // "": it returns
	}{
		{"a call that may have run", RPCOptions{}, false, rpcerror.CodeMaybeExecuted},
		{"a call that may have run, of an actor that moved", RPCOptions{}, true, rpcerror.CodeMaybeExecuted},
		{"a call that may run twice, of an actor that moved", RPCOptions{Idempotent: true}, true, ""},
		{"a call with a retry left, of an actor that moved", RPCOptions{Retries: 1}, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				p := w.start(home)
				p.methods = methodsFor(none)
				w.start(other).methods = methodsFor(none)
				r := resolverAt(t, w, home)
				client := w.client(r, Config{Keepalive: Keepalive{Every: 10 * time.Second, Patience: time.Second}})
				h := mustLookup(t, client, "counter")
				mustAdd(t, h, 1)
				synctest.Wait() // it knows the methods
				w.mu.Lock()
				p.mute, p.dark = true, true
				w.mu.Unlock()
				began := time.Now()
				f := Go[int](t.Context(), h, "add", 2, test.options)
				synctest.Wait()
				if test.moved {
					r.Set("counter", resolver.Endpoint{Address: other, Incarnation: w.processes[other].incarnation})
				}
				got, err := f.Result(t.Context())
				if rpcerror.CodeOf(err) != test.code || err == nil && got != 2 {
					t.Errorf("got %d, %v; want code %q", got, err, test.code)
				}
				if took := time.Since(began); took < 11*time.Second || took > 12*time.Second {
					t.Errorf("it took %s, want 11 to 12 s", took)
				}
			})
		})
	}
}
