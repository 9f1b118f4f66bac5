package actorrpc_test

import (
	"context"
	"testing"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// A stream that fails is made again only if no item of it has come.
func TestStreamThatFailsIsRetriedBeforeItsFirstItem(t *testing.T) {
	for _, test := range []struct{ items, runs int }{{0, 3}, {2, 1}} {
		f := newFeed()
		server, _ := serve(t, host.Config{}, map[string]any{"feed": f})
		h := lookup(t, dialed(t, actorrpc.Config{}, server.Address()), "feed")
		options := actorrpc.RPCOptions{Retries: 2, RetryErrors: &actorrpc.ErrorFilter{}}
		got, err := collect(actorrpc.Stream[int](t.Context(), h, "break", test.items, options))
		expect(t, got, err, test.items, rpcerror.CodeApplication)
		if runs := f.runs.Load(); int(runs) != test.runs {
			t.Errorf("a stream that fails after %d items ran %d times, want %d", test.items, runs, test.runs)
		}
	}
}

// A stream may have ended when its loop is cancelled: the error is that of the cancellation.
func TestLoopThatIsCancelledAfterItsStreamHasEnded(t *testing.T) {
	f := newFeed()
	server, _ := serve(t, host.Config{}, map[string]any{"feed": f})
	h := lookup(t, dialed(t, actorrpc.Config{}, server.Address()), "feed")
	for _, test := range []struct {
		cause error
		code  rpcerror.Code
	}{{context.Canceled, rpcerror.CodeCancelled}, {context.DeadlineExceeded, rpcerror.CodeDeadline}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var got []int
		var last error
		for n, err := range actorrpc.Stream[int](ctx, h, "count", 3) {
			if last = err; err != nil {
				break
			}
			got = append(got, n)
			if _, err := actorrpc.Call[int](t.Context(), h, "one"); err != nil { // it runs, and is answered, after the stream
				t.Fatal(err)
			}
			cancel(test.cause)
		}
		expect(t, got, last, 1, test.code)
	}
}
