package actorrpc

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// call is one call, from when it is made until it has its answer. It is in its
// actor's backlog or with a transport.
type call struct {
	delivery // what was asked for, and how far it is on its way
	queued
	answer
	actor *actor
}

// queued is what an actor keeps of a call. Its lock guards all of it, but for held.
type queued struct {
	order            uint64
	findBy           time.Time       // until when a place to send it must be found
	rejection        *rpcerror.Error // the last answer by which it did not run
	loss             *rpcerror.Error // how it ended where it may have run, if it is not sent again
	needsDeclaration bool            // it is sent again only if its method turns out to declare that
	needsVerdict     bool            // it is not sent again: it waits for whether its actor is dead for good
	retried          int             // of RPCOptions.Retries
	dropped          bool            // its caller has given it up
	via              transport       // where it was sent

	held atomic.Bool // the actor sends nothing later before this is settled
}

// answer is what came of a call. The first end counts.
type answer struct {
	finished atomic.Bool
	done     chan struct{}
	reply    *wire.Reply // valid once done is closed, as the next two
	results  [][]byte
	err      *rpcerror.Error
	release  func() // frees what waits for the deadline; nil
}

var _ owner = (*call)(nil)

func newCall(a *actor, r request) *call {
	c := &call{actor: a, delivery: delivery{request: r, locator: a}, answer: answer{done: make(chan struct{})}}
	c.owner = c
	return c
}

func (c *call) ended() bool { return c.finished.Load() }

// finish ends the call, unless it has ended.
func (c *call) finish(reply *wire.Reply, results [][]byte, err *rpcerror.Error) {
	if !c.finished.CompareAndSwap(false, true) {
		return
	}
	c.reply, c.results, c.err = reply, results, err
	c.actor.load.Add(-1)
	close(c.done)
	if c.release != nil {
		c.release()
	}
}

// fail ends the call with an error, which it gives the call's names where it has none.
func (c *call) fail(err *rpcerror.Error) { c.finish(nil, nil, c.named(err)) }

// hold and settled keep later calls of the actor from being sent, and let them.
func (c *call) hold() {
	if c.held.CompareAndSwap(false, true) {
		c.actor.unsettled.Add(1)
	}
}

func (c *call) settled() {
	if c.held.CompareAndSwap(true, false) && c.actor.unsettled.Add(-1) == 0 {
		c.actor.wake()
	}
}

func (c *call) answered(reply *wire.Reply, results [][]byte) { c.actor.answered(c, reply, results) }

func (c *call) lost(err *rpcerror.Error) { c.actor.lost(c, err) }

func (c *call) requeue() { c.actor.requeue(c) }

// resultSize is how many bytes the answer is.
func (c *call) resultSize() uint64 {
	size := uint64(len(c.reply.GetResult()))
	for _, b := range c.results {
		size += uint64(len(b))
	}
	return size
}

// decode reads the answer of a call that is done.
func (c *call) decode(into any) error {
	if c.err != nil {
		return c.err.Typed()
	}
	bad := func(code rpcerror.Code, argument, message string) error {
		return &rpcerror.Error{Code: code, Message: message, Ran: true, Actor: c.name, Method: c.method, Argument: argument}
	}
	kind := codec.Kind(c.reply.GetCodec())
	switch kind {
	case codec.Msgpack, codec.JSON, 0:
	case codec.Pickle:
		return bad(rpcerror.CodeDenied, "", "pickle is refused: only peers in Python take it, and only if they are told to")
	default:
		return bad(rpcerror.CodeEncoding, "", fmt.Sprintf("the result is in %s, which is not known here", kind))
	}
	if _, none := into.(*struct{}); none {
		return nil
	}
	memory := wire.DecodedLimit(c.actor.config.MaxMessageBytes, c.resultSize())
	err := c.actor.shapes.DecodeResult(kind, c.reply.GetResult(), c.results, memory, into)
	if e, ok := errors.AsType[*codec.TooLargeError](err); ok {
		return bad(rpcerror.CodeTooLarge, "", e.Error())
	}
	if e, ok := errors.AsType[*codec.Error](err); ok {
		return bad(rpcerror.CodeEncoding, e.Path, e.Problem)
	}
	return err
}

// end ends the call for its caller, whose context has ended.
func (c *call) end(cause error) {
	may, problem := c.actor.drop(c)
	err := &rpcerror.Error{Code: rpcerror.CodeCancelled, Message: "the call was cancelled", Ran: may}
	if errors.Is(cause, context.DeadlineExceeded) {
		err.Code, err.Message = rpcerror.CodeDeadline, "the deadline passed"
	}
	if !may {
		err.Message += " before it was sent"
	}
	if problem != nil && !may {
		err.Cause, err.Suggestions = problem, problem.Suggestions
		err.Message += ": " + problem.Message
	}
	c.fail(err)
}
