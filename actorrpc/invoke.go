package actorrpc

import (
	"context"
	"errors"
	"sync"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/internal/lane"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// Call calls a method and waits for what it returns. Among the arguments, [Named]
// gives some by name and [RPCOptions] say how this call is made. R is what package
// codec makes of the result, a [Handle], or struct{} to ignore it. Errors are *[Error], or,
// as a [SelfCallError], have one.
func Call[R any](ctx context.Context, h Handle, method string, args ...any) (R, error) {
	var result R
	c, err := h.encode(method, args)
	if err != nil {
		return result, err
	}
	c.perform(ctx)
	err = decodeInto(c, &result)
	return result, err
}

// perform makes the call and waits for its answer.
func (c *call) perform(ctx context.Context) {
	c.waiters = c.actor.client.waiters(ctx)
	ctx, cancel := c.within(ctx)
	defer cancel()
	if ctx.Err() != nil {
		c.end(context.Cause(ctx))
	}
	c.actor.start(c, ctx.Done() == nil)
	select {
	case <-c.done:
	case <-ctx.Done():
		c.end(context.Cause(ctx))
		<-c.done
	}
}

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
	c.made = lane.Of(ctx)
	return begin[R](ctx, c)
}

// unmade is of a call that cannot be made.
func unmade[R any](err error) *Future[R] {
	done := make(chan struct{})
	close(done)
	return &Future[R]{call: &call{done: done}, err: err}
}

// begin makes a call without waiting for its answer.
func begin[R any](ctx context.Context, c *call) *Future[R] {
	c.endWith(c.within(ctx))
	f := &Future[R]{call: c, cancel: func() { c.end(context.Canceled) }}
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
	c.actor.mu.Lock() // end takes it before it looks at what is set here
	defer c.actor.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { c.end(context.Cause(ctx)) })
	c.release = func() {
		stop()
		cancel()
	}
}

// Future is a call that was made and may be without an answer yet.
type Future[R any] struct {
	call   *call
	cancel func() // nil: it was never made

	once   sync.Once
	result R
	err    error
}

// Done is closed once there is an answer.
func (f *Future[R]) Done() <-chan struct{} { return f.call.done }

// Cancel gives the call up. It does not run if it has not begun, and is told to
// end if it has and its language can.
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
			f.err = decodeInto(f.call, &f.result)
		}
	})
	return f.result, f.err
}

// ofNoActor is the error of a handle that is zero.
func ofNoActor(method string) *Error {
	return &Error{Code: CodeBadArguments, Message: "the handle is of no actor; get one by Lookup", Method: method}
}

// encode makes a call of its arguments.
func (h Handle) encode(method string, args []any) (*call, error) {
	if h.actor == nil {
		return nil, ofNoActor(method)
	}
	c, err := h.actor.newCall(method, argumentsOf(args, h.options.over(h.actor.client.config.Options)))
	if err != nil {
		return nil, err
	}
	return c, nil
}

// within is the context of a call, with its timeout.
func (c *call) within(ctx context.Context) (context.Context, context.CancelFunc) {
	cancel := context.CancelFunc(func() {})
	if c.options.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.options.Timeout)
	}
	c.deadline, _ = ctx.Deadline()
	c.trace = traceOf(ctx)
	return ctx, cancel
}

// decodeInto reads a call's answer, and makes handles of references.
func decodeInto[R any](c *call, result *R) error {
	h, ok := any(result).(*Handle)
	if !ok {
		return c.decode(result)
	}
	var ref codec.ActorRef
	if err := c.decode(&ref); err != nil {
		return err
	}
	found, err := c.actor.client.Handle(ref)
	*h = found
	return err
}

// encodingError names the argument that no codec carries.
func encodingError(actor, method string, err error) *Error {
	e := &Error{Code: CodeEncoding, Message: err.Error(), Actor: actor, Method: method}
	if at, ok := errors.AsType[*codec.Error](err); ok {
		e.Message, e.Argument = at.Problem, at.Path
	}
	return e
}

// Raw is an encoded call or its encoded answer, for programs that pass them on.
type Raw struct {
	Codec   codec.Kind
	Data    []byte // of a call: an array of the positional arguments and the named ones
	Buffers [][]byte
}

// CallRaw calls a method with arguments that are encoded already.
func CallRaw(ctx context.Context, h Handle, method string, args Raw) (Raw, error) {
	if h.actor == nil {
		return Raw{}, ofNoActor(method)
	}
	c := &call{
		actor: h.actor, method: method, options: h.options.over(h.actor.client.config.Options),
		codec: args.Codec, args: args.Data, buffers: args.Buffers, done: make(chan struct{}),
	}
	if err := c.sendable(); err != nil {
		return Raw{}, err
	}
	c.perform(ctx)
	if c.err != nil {
		return Raw{}, c.err.typed()
	}
	return c.raw()
}

func (c *call) raw() (Raw, error) {
	if c.reply.GetCodec() == wire.Codec_CODEC_PICKLE {
		return Raw{}, c.decode(new(any))
	}
	return Raw{Codec: codec.Kind(c.reply.GetCodec()), Data: c.reply.GetResult(), Buffers: c.results}, nil
}
