package actorrpc

import (
	"context"
	"sync"

	"github.com/fray-ml/fray/actorrpc/internal/callchain"
)

// Go calls a method and does not wait. Calls that one goroutine makes of an actor
// reach it in their order. ctx is for the whole call. Go blocks only while the
// server has as many calls of this process as it takes or, where the actor is being
// looked for, more than 10,000 of them or 256 MiB of their arguments wait for that; then
// until there is room or the call is over, by ctx, its timeout or ResolveTimeout.
func Go[R any](ctx context.Context, h Handle, method string, args ...any) *Future[R] {
	c, err := h.encode(method, args)
	if err != nil {
		return unmade[R](err)
	}
	c.made = callchain.Of(ctx)
	return begin[R](ctx, h.client, c)
}

// Future is a call that was made and may be without an answer yet.
type Future[R any] struct {
	client *Client
	call   *call
	cancel func() // nil: it was never made

	once   sync.Once
	result R
	err    error
}

// Done is closed once there is an answer.
func (f *Future[R]) Done() <-chan struct{} { return f.call.done }

// Cancel gives the call up. It does not run if it has not begun, and is cancelled
// if it has and its language can.
func (f *Future[R]) Cancel() {
	if f.cancel != nil {
		f.cancel()
	}
}

// Result waits for what the method returns. ctx is for the waiting only, and its
// end gives ctx's error. A [SelfCallError] leaves the call as it is, too.
func (f *Future[R]) Result(ctx context.Context) (R, error) {
	if err := f.call.wait(ctx); err != nil {
		var none R
		return none, err
	}
	f.once.Do(func() {
		if f.err == nil {
			f.err = decodeInto(f.client, f.call, &f.result)
		}
	})
	return f.result, f.err
}

// unmade is of a call that cannot be made.
func unmade[R any](err error) *Future[R] {
	done := make(chan struct{})
	close(done)
	return &Future[R]{call: &call{answer: answer{done: done}}, err: err}
}

// begin makes a call without waiting for its answer.
func begin[R any](ctx context.Context, client *Client, c *call) *Future[R] {
	c.endWith(c.within(ctx))
	f := &Future[R]{client: client, call: c, cancel: func() { c.end(context.Canceled) }}
	if via := c.actor.start(c, c.release == nil); via != nil {
		via.throttle(c.done)
	} else {
		c.actor.throttle(c.done)
	}
	return f
}

// endWith ends the call with its context.
func (c *call) endWith(ctx context.Context, cancel context.CancelFunc) {
	if ctx.Done() == nil {
		return
	}
	if ctx.Err() != nil {
		c.end(context.Cause(ctx))
		cancel()
		return
	}
	c.actor.mu.Lock() // end takes it before it reads what is set here
	defer c.actor.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { c.end(context.Cause(ctx)) })
	c.release = func() {
		stop()
		cancel()
	}
}
