package actorrpc

import (
	"context"
	"errors"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/internal/callchain"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// Call calls a method and waits for what it returns. Among the arguments, [Named]
// gives some by name and [RPCOptions] configure this call. R is what package
// codec makes of the result, a [Handle], or struct{} to ignore it. Errors are *[Error], or,
// as a [SelfCallError], have one.
func Call[R any](ctx context.Context, h Handle, method string, args ...any) (R, error) {
	var result R
	c, err := h.encode(method, args)
	if err != nil {
		return result, err
	}
	c.perform(ctx, h.client.waiters(ctx))
	err = decodeInto(h.client, c, &result)
	return result, err
}

// perform makes the call and waits for its answer.
func (c *call) perform(ctx context.Context, waiters []callchain.Run) {
	c.waiters = waiters
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

// ofNoActor is the error of a handle that is zero.
func ofNoActor(method string) *rpcerror.Error {
	return &rpcerror.Error{Code: rpcerror.CodeBadArguments, Message: "the handle is of no actor; get one by Lookup", Method: method}
}

// encode makes a call of its arguments.
func (h Handle) encode(method string, args []any) (*call, error) {
	if h.actor == nil {
		return nil, ofNoActor(method)
	}
	given := argumentsOf(args, h.options.withDefaults(h.client.config.Options))
	c := newCall(h.actor, request{name: h.Name(), method: method, options: given.options, codec: codec.Msgpack})
	var err error
	if c.args, c.buffers, err = h.actor.shapes.EncodeArgs(c.codec, given.positional, given.named); err != nil {
		return nil, encodingError(c.name, method, err)
	}
	if err := c.measure(h.client.config.MaxMessageBytes); err != nil {
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
func decodeInto[R any](client *Client, c *call, result *R) error {
	h, ok := any(result).(*Handle)
	if !ok {
		return c.decode(result)
	}
	var ref codec.ActorRef
	if err := c.decode(&ref); err != nil {
		return err
	}
	found, err := client.Handle(ref)
	*h = found
	return err
}

// encodingError names the argument that no codec carries.
func encodingError(actor, method string, err error) *rpcerror.Error {
	e := &rpcerror.Error{Code: rpcerror.CodeEncoding, Message: err.Error(), Actor: actor, Method: method}
	if at, ok := errors.AsType[*codec.Error](err); ok {
		e.Message, e.Argument = at.Problem, at.Path
	}
	return e
}
