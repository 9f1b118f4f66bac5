package actorrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/internal/lane"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// maxSends bounds how often a call is sent again after a connection broke: one that
// breaks it every time must end.
const maxSends = 16

// call is one call, from when it is made until it has its answer. It is in its
// actor's queue or with a transport.
type call struct {
	actor    *actor
	method   string
	codec    codec.Kind
	args     []byte
	buffers  [][]byte
	bytes    uint64 // of args and buffers
	trace    string // W3C traceparent of the caller's span, ""
	options  RPCOptions
	deadline time.Time // zero: none
	release  func()    // frees what waits for the deadline; nil
	made     lane.Run  // the run that made it; nil: none, or it waits
	waiters  []lane.Run

	// Guarded by the actor.
	order   uint64
	findBy  time.Time // until when a place to send it must be found
	refusal *Error    // the last answer that said it did not run
	loss    *Error    // how it ended where it may have run, if it is not sent again
	asks    bool      // it is sent again only if its method turns out to be idempotent
	dropped bool      // nobody waits for it any more
	via     transport // where it was sent

	// Guarded by the transport.
	endpoint Endpoint // that it is for
	seq      uint64   // 0: not numbered
	attempt  uint32
	sends    int
	arrived  bool // may have, over a connection that broke
	receipt  *wire.Receipt

	held     atomic.Bool // the actor sends nothing later before this is settled
	finished atomic.Bool
	done     chan struct{}
	reply    *wire.Reply // valid once done is closed, as the next two
	results  [][]byte
	err      *Error
}

// mayHaveArrived needs the transport's lock.
func (c *call) mayHaveArrived() bool {
	return c.arrived || c.receipt != nil && c.receipt.MayHaveArrived()
}

// frame is the call as it is sent, and for how long it may still run.
func (c *call) frame() *wire.Call {
	f := &wire.Call{
		Actor: c.endpoint.Name, Incarnation: c.endpoint.Incarnation, Method: c.method, Seq: c.seq, Attempt: c.attempt,
		Codec: wire.Codec(c.codec), Args: c.args, Trace: c.trace,
	}
	if len(c.buffers) > 0 {
		f.BufferSizes = make([]uint64, len(c.buffers))
		for i, b := range c.buffers {
			f.BufferSizes[i] = uint64(len(b))
		}
	}
	if !c.deadline.IsZero() {
		f.TimeoutNs = uint64(max(1, time.Until(c.deadline)))
	}
	return f
}

// finish ends the call, unless it has ended.
func (c *call) finish(reply *wire.Reply, results [][]byte, err *Error) {
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
func (c *call) fail(err *Error) { c.finish(nil, nil, c.named(err)) }

// named is an error with the call's names where it has none.
func (c *call) named(err *Error) *Error {
	named := *err
	named.Actor, named.Method = cmp.Or(named.Actor, c.actor.key.name), cmp.Or(named.Method, c.method)
	return &named
}

// repeatable says whether the call's options have it sent again though it may have
// run, and uses one of its retries up if need be.
func (c *call) repeatable() bool {
	if c.sends >= maxSends {
		return false
	}
	if c.options.Idempotent {
		return true
	}
	if c.options.Retries > 0 {
		c.options.Retries--
		return true
	}
	return false
}

// decode reads the answer of a call that is done.
func (c *call) decode(into any) error {
	if c.err != nil {
		return c.err.typed()
	}
	bad := func(code Code, argument, message string) error {
		return &Error{Code: code, Message: message, Ran: true, Actor: c.actor.key.name, Method: c.method, Argument: argument}
	}
	kind := codec.Kind(c.reply.GetCodec())
	switch kind {
	case codec.Msgpack, codec.JSON, 0:
	case codec.Pickle:
		return bad(CodeDenied, "", "pickle is refused: only peers in Python take it, and only if they are told to")
	default:
		return bad(CodeEncoding, "", fmt.Sprintf("the result is in %s, which is not known here", kind))
	}
	if _, none := into.(*struct{}); none {
		return nil
	}
	err := codec.DecodeResult(kind, c.reply.GetResult(), c.results, c.actor.client.config.MaxMessageBytes, into)
	if e, ok := errors.AsType[*codec.TooLargeError](err); ok {
		return bad(CodeTooLarge, "", e.Error())
	}
	if e, ok := errors.AsType[*codec.Error](err); ok {
		return bad(CodeEncoding, e.Path, e.Problem)
	}
	return err
}

// end ends the call for its caller, whose context has ended.
func (c *call) end(cause error) {
	may, problem := c.actor.drop(c)
	err := &Error{Code: CodeCancelled, Message: "the call was cancelled", Ran: may}
	if errors.Is(cause, context.DeadlineExceeded) {
		err.Code, err.Message = CodeDeadline, "the deadline passed"
	}
	if !may {
		err.Message += " before it was sent"
	}
	if problem != nil && !may {
		err.Cause, err.Near = problem, problem.Near
		err.Message += ": " + problem.Message
	}
	c.fail(err)
}

// maybeExecuted is the error of a call whose fate is not known.
func maybeExecuted() *Error {
	return &Error{Code: CodeMaybeExecuted, Message: "the connection broke after the call was sent: it may have run", Ran: true}
}

// neverWhole is the error of a call whose frame was cut each time.
func neverWhole() *Error {
	return &Error{Code: CodeUnavailable, Message: fmt.Sprintf("%d connections broke before all of it was sent", maxSends+1)}
}

func unavailable(address string, err error) *Error {
	return &Error{Code: CodeUnavailable, Message: fmt.Sprintf("nobody answers at %s: %v", address, err)}
}

// tooLarge is the error of a call that is not sent for its size.
func tooLarge(size, limit uint64) *Error {
	return &Error{Code: CodeTooLarge, Message: fmt.Sprintf("the arguments are %s; at most %s are taken (max_message_bytes)", sizeText(size), sizeText(limit))}
}

// sizeText is a number of bytes for people: "64 MiB", "64.1 MiB", "12 bytes".
func sizeText(n uint64) string {
	for _, unit := range []struct {
		name string
		size uint64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n < unit.size {
			continue
		}
		if n%unit.size == 0 {
			return fmt.Sprintf("%d %s", n/unit.size, unit.name)
		}
		tenths := n/unit.size*10 + (n%unit.size*10+unit.size-1)/unit.size // up: it is more than the limit
		return fmt.Sprintf("%d.%d %s", tenths/10, tenths%10, unit.name)
	}
	return fmt.Sprintf("%d bytes", n)
}
