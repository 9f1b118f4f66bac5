package actorrpc

import (
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// A server that stops may have run what reached it over an earlier connection: its
// last frame of a later one does not change that.
func TestCloseLeavesEarlierConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		p.methods = methodsFor(none)
		r := resolverAt(t, w, home)
		p.breaks = map[int]*broken{1: {beforeReply, func() {
			next := w.start(other)
			next.methods = methodsFor(none)
			p.raw = func(c net.Conn) {
				if _, err := readFrame(c, ""); err != nil {
					return
				}
				_ = writeFrame(c, &wire.Frame{Kind: &wire.Frame_Handshake{Handshake: p.hello}})
				if _, err := readFrame(c, ""); err != nil {
					return
				}
				r.Set("counter", resolver.Endpoint{Address: other, Incarnation: next.incarnation})
				_ = writeFrame(c, &wire.Frame{Kind: &wire.Frame_Close{Close: &wire.Close{Error: rejectionOf(rpcerror.CodeStopping)}}})
			}
		}}}
		h := mustLookup(t, w.client(r, Config{}), "counter")
		_, err := Call[int](t.Context(), h, "add", 1)
		if rpcerror.CodeOf(err) != rpcerror.CodeMaybeExecuted || !ran(err) {
			t.Errorf("got %v, want that it may have run", err)
		}
		if got := w.ran(); !slices.Equal(got, []int{1}) {
			t.Errorf("ran %v, want it once", got)
		}
	})
}

// A call whose caller was told that it did not run does not run.
func TestWhatIsGivenUpWhileTheConnectionIsBrokenIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		p.breaks = map[int]*broken{1: {beforeFrame, func() {
			w.mu.Lock()
			p.dark = true
			w.mu.Unlock()
		}}}
		h := mustLookup(t, w.client(resolverAt(t, w, home), Config{}), "counter")
		first := Go[int](t.Context(), h, "add", 1)
		second := Go[int](t.Context(), h, "add", 2)
		time.Sleep(time.Second)
		first.Cancel()
		if _, err := first.Result(t.Context()); rpcerror.CodeOf(err) != rpcerror.CodeCancelled || ran(err) {
			t.Errorf("got %v, want that it was cancelled and did not run", err)
		}
		w.mu.Lock()
		p.dark = false
		w.mu.Unlock()
		if _, err := second.Result(t.Context()); err != nil {
			t.Error(err)
		}
		if got := w.ran(); !slices.Equal(got, []int{2}) {
			t.Errorf("ran %v, want the second only", got)
		}
	})
}

// A call that waits to be written will be: its caller must not hear that it did not run.
func TestWhatWaitsToBeWrittenMayRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		reads := make(chan struct{})
		var calls []*wire.Call
		p.raw = func(c net.Conn) {
			if _, err := readFrame(c, ""); err != nil {
				return
			}
			_ = writeFrame(c, &wire.Frame{Kind: &wire.Frame_Handshake{Handshake: p.hello}})
			<-reads
			for {
				f, err := readFrame(c, "")
				if err != nil {
					return
				}
				if f.GetCall() != nil {
					calls = append(calls, f.GetCall())
				}
			}
		}
		h := mustLookup(t, w.client(resolverAt(t, w, home), Config{}), "counter")
		for range 3 { // all but the first wait behind it
			go Go[int](t.Context(), h, "add", 1)
			synctest.Wait()
		}
		began := time.Now()
		_, err := Call[int](t.Context(), h, "add", 2, RPCOptions{Timeout: time.Second})
		if took := time.Since(began); rpcerror.CodeOf(err) != rpcerror.CodeDeadline || took != time.Second {
			t.Errorf("got %v after %s, want that the deadline passed, after 1s", err, took)
		}
		told := ran(err)
		close(reads)
		synctest.Wait()
		if sent := len(calls) == 4; sent != told {
			t.Errorf("sent is %t, and the caller was told %t", sent, told)
		}
	})
}

// A deadline holds also for the caller who has to write to a server that does not read.
func TestDeadlineWhileWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		over := make(chan struct{})
		defer close(over)
		p.raw = func(c net.Conn) {
			if _, err := readFrame(c, ""); err != nil {
				return
			}
			_ = writeFrame(c, &wire.Frame{Kind: &wire.Frame_Handshake{Handshake: p.hello}})
			<-over
		}
		h := mustLookup(t, w.client(resolverAt(t, w, home), Config{}), "counter")
		_, _ = Call[int](t.Context(), h, "add", 1, RPCOptions{Timeout: time.Second}) // connects
		for _, call := range []func(ctx context.Context) error{
			func(ctx context.Context) error { _, err := Call[int](ctx, h, "add", 2); return err },
			func(ctx context.Context) error { _, err := Go[int](ctx, h, "add", 2).Result(t.Context()); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			err := call(ctx)
			cancel()
			if took := time.Since(began); rpcerror.CodeOf(err) != rpcerror.CodeDeadline || took != time.Second {
				t.Errorf("got %v after %s, want that the deadline passed, after 1s", err, took)
			}
		}
	})
}

// A caller that gives a call up ends it with its own reason, also where the server answers the
// cancellation before.
func TestAnswerOfACancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		over := make(chan struct{})
		p.raw = func(c net.Conn) {
			if _, err := readFrame(c, ""); err != nil {
				return
			}
			_ = writeFrame(c, &wire.Frame{Kind: &wire.Frame_Handshake{Handshake: p.hello}})
			<-over
		}
		h := mustLookup(t, w.client(resolverAt(t, w, home), Config{}), "counter")
		f := Go[int](t.Context(), h, "add", 1)
		synctest.Wait()
		_, _ = f.call.actor.drop(f.call)
		f.call.answered(&wire.Reply{Seq: 1, Error: &wire.Error{Code: wire.Code_CODE_CANCELLED, Ran: true}}, nil)
		f.call.end(context.DeadlineExceeded)
		if _, err := f.Result(t.Context()); rpcerror.CodeOf(err) != rpcerror.CodeDeadline {
			t.Errorf("got %v, want that the deadline passed", err)
		}
		close(over)
	})
}

// What is cancelled before it is made is not made.
func TestCancelledBeforehand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(home)
		h := mustLookup(t, w.client(resolverAt(t, w, home), Config{}), "counter")
		mustAdd(t, h, 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 {
			_, err := Go[int](ctx, h, "add", 2).Result(t.Context())
			if rpcerror.CodeOf(err) != rpcerror.CodeCancelled || ran(err) {
				t.Errorf("Go: got %v, want that it was cancelled and did not run", err)
			}
			if _, err = Call[int](ctx, h, "add", 3); rpcerror.CodeOf(err) != rpcerror.CodeCancelled || ran(err) {
				t.Errorf("Call: got %v, want that it was cancelled and did not run", err)
			}
		}
		if got := w.ran(); !slices.Equal(got, []int{1}) {
			t.Errorf("ran %v, want the first only", got)
		}
		if n := h.Pending(); n != 0 {
			t.Errorf("%d calls are pending, want none", n)
		}
	})
}
