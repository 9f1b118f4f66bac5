package host

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// call is one run of a method, from its arrival until it is answered.
type call struct {
	server   *Server
	actor    *actor
	method   *bound
	in       *wire.Call
	buffers  [][]byte
	caller   string
	deadline time.Time // zero: none
	arrived  time.Time
	entry    *entry   // of the ledger; nil: seq is 0
	to       answerer // without an entry
	memory   uint64   // bytes that its arguments may take when they are decoded
	transferred
	takes taking
	// itemLimit is on an item of a stream, in bytes; 0: the server's
	itemLimit uint64

	mu     sync.Mutex
	phase  phase
	cancel context.CancelCauseFunc // while it runs, nil for methods that take no context
	stream *stream                 // nil until the method has returned an iterator
}

// transferred is what a call has whose arguments come in parts.
type transferred struct {
	transfer uint64            // bytes of the arguments; 0: they came with the call
	complete bool              // they are there; the session's turn guards it
	from     *connection       // that brings them; nil: of no connection
	former   *call             // the same as it was sent before, of which not all has come
	room     *wire.Reservation // for them
}

// phase is how far a call is.
type phase string

const (
	phaseWaits   phase = "waits"
	phaseRuns    phase = "runs"
	phaseOver    phase = "over" // it is answered, or about to be
	phaseUnbegun phase = ""
)

// advance goes on to a phase, and reports whether the call was in the one before.
func (c *call) advance(from, to phase) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != from {
		return false
	}
	c.phase = to
	return true
}

// is reports whether the call is in a phase.
func (c *call) is(p phase) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase == p
}

// size is how much memory the arguments take, without those that came in parts.
func (c *call) size() int64 {
	if c.transfer > 0 {
		return 0
	}
	n := len(c.in.GetArgs())
	for _, b := range c.buffers {
		n += len(b)
	}
	return int64(n)
}

// run calls the method, unless the call is over already, and makes the answer.
func (c *call) run() *answer {
	if !c.deadline.IsZero() && !time.Now().Before(c.deadline) {
		return c.drop(&rpcerror.Error{Code: rpcerror.CodeDeadline, Message: "the deadline passed before the call began"})
	}
	if !c.advance(phaseWaits, phaseRuns) {
		return nil
	}
	c.server.begun(c)
	out := c.perform()
	if !c.advance(phaseRuns, phaseOver) {
		return nil // the server gave up on it
	}
	return out
}

// drop is the answer to a call that waits and will not run, nil if it does not wait any more.
func (c *call) drop(e *rpcerror.Error) *answer {
	if !c.advance(phaseWaits, phaseOver) {
		return nil
	}
	c.server.begun(c)
	c.in.Args, c.buffers = nil, nil // its mailbox may hold it for long
	return c.failed(e)
}

// perform decodes, calls and encodes. Nothing that a method does ends the server.
func (c *call) perform() (out *answer) {
	ran, returned := false, false
	defer func() {
		if returned {
			return
		}
		if problem := recover(); problem != nil {
			out = c.raised(panicError(problem, ran))
			return
		}
		// runtime.Goexit: this goroutine ends after what is deferred.
		if c.advance(phaseRuns, phaseOver) {
			c.answer(c.failed(&rpcerror.Error{Code: rpcerror.CodeInternal, Message: "the method ended its goroutine", Ran: true}), false)
		}
	}()
	out = c.invoke(&ran)
	returned = true
	return out
}

func (c *call) invoke(ran *bool) *answer {
	kind := codec.Kind(c.in.GetCodec())
	in, err := c.method.values(c.in, c.buffers, c.memory, c.method.names)
	if err != nil {
		return c.failed(codecError(rpcerror.CodeBadArguments, err))
	}
	var ctx context.Context
	if c.method.takesContext {
		var end func()
		if ctx, end = c.context(); end != nil {
			defer end()
		}
		in = append([]reflect.Value{reflect.ValueOf(ctx)}, in...)
	}
	*ran = true
	results := c.method.function.Call(in)
	if c.method.fails {
		if err, ok := reflect.TypeAssert[error](results[len(results)-1]); ok && err != nil {
			return c.raised(methodError(ctx, err))
		}
	}
	if c.method.streams {
		return c.produce(ctx, results[0])
	}
	var result any
	if c.method.result {
		result = results[0].Interface()
	}
	data, buffers, err := c.method.shapes.EncodeResult(kind, result)
	if err != nil {
		e := codecError(rpcerror.CodeEncoding, err)
		e.Ran = true
		return c.failed(e)
	}
	reply := &wire.Reply{Seq: c.in.GetSeq(), Codec: c.in.GetCodec(), Result: data, Incarnation: c.actor.incarnation}
	size := uint64(len(data))
	for _, b := range buffers {
		reply.BufferSizes = append(reply.BufferSizes, uint64(len(b)))
		size += uint64(len(b))
	}
	if limit := c.resultLimit(); size > limit {
		e := tooLarge("the result is", size, limit)
		e.Ran = true
		return c.failed(e)
	}
	return &answer{reply, buffers}
}

// resultLimit is how large a result may be, in bytes. By gRPC it is one message.
func (c *call) resultLimit() uint64 {
	limit := c.server.cfg.MaxMessageBytes
	to, frames := c.to.(*connection)
	switch {
	case !frames:
		return min(limit, wire.MaxFrame)
	case to.takesParts > 0:
		return min(limit, to.takesParts)
	}
	return limit
}

// failed is the answer that carries an error.
func (c *call) failed(e *rpcerror.Error) *answer {
	e.Actor, e.Method = clip(c.in.GetActor(), maxNameShown), clip(c.in.GetMethod(), maxNameShown)
	reply := &wire.Reply{Seq: c.in.GetSeq(), Codec: c.in.GetCodec(), Error: e.Wire()}
	if c.actor != nil {
		reply.Incarnation = c.actor.incarnation
	}
	return &answer{reply: reply}
}

// raised is the answer of a method that returned an error or panicked, with what it declares of retries.
func (c *call) raised(e *rpcerror.Error) *answer {
	out := c.failed(e)
	if o := c.method.options; out.reply.GetError().GetCode() == wire.Code_CODE_APPLICATION && (o.Retries > 0 || len(o.RetryErrors) > 0) {
		matches := func(name string) bool { return name == "*" || name == e.Type || slices.Contains(e.Bases, name) }
		out.reply.Error.Retry = &wire.Retry{Retries: uint32(o.Retries), Matches: slices.ContainsFunc(o.RetryErrors, matches)}
	}
	return out
}

// answer hands out the reply; nil: it was handed out before.
func (c *call) answer(a *answer, unhurried bool) {
	if a == nil {
		return
	}
	c.count(a.reply.GetError())
	c.discharge()
	s, to, kept := c.streaming(), c.to, int64(0)
	if s != nil {
		kept = s.seal(a)
	}
	if c.entry != nil {
		to = c.server.ledger.finish(c.entry, a, kept, c.server.keep(c, a))
	}
	switch {
	case s != nil:
		s.finish(a)
	case to != nil:
		to.answer(a.reply, a.buffers, unhurried)
	}
	c.server.leave() // now: what has no reply before the last frame did not run
}

// count counts the call; failure is nil if it returned.
func (c *call) count(failure *wire.Error) {
	code := ""
	if failure != nil {
		code = string(rpcerror.FromWire(failure).Code)
	}
	m := c.server.metrics
	if c.method == nil {
		name := ""
		if c.actor != nil {
			name = c.actor.name
		}
		m.unserved(name, code)
		return
	}
	c.actor.pending.Add(-1)
	c.actor.calls.Add(1)
	if failure != nil {
		c.actor.errors.Add(1)
	}
	m.answered(&c.method.series, c.actor.name, c.method.name, time.Since(c.arrived), code)
}

// stop cancels the call: one that waits is answered, the context of one that runs ends.
func (c *call) stop(e *rpcerror.Error) {
	if c.stopWaiting(e) {
		return
	}
	c.mu.Lock()
	cancel, s := c.cancel, c.stream
	c.mu.Unlock()
	if cancel != nil {
		cancel(e)
	}
	if s != nil {
		s.stop(e)
	}
}

// stopWaiting answers a call that waits, and reports whether it did.
func (c *call) stopWaiting(e *rpcerror.Error) bool {
	a := c.drop(e)
	c.answer(a, false)
	return a != nil
}

// abandon answers a call that runs and does not end.
func (c *call) abandon(e *rpcerror.Error) {
	if c.advance(phaseRuns, phaseOver) {
		c.answer(c.failed(e), false)
	}
}

var errStopping = errors.New("the server is shutting down")

func stopping(ran bool) *rpcerror.Error {
	return &rpcerror.Error{Code: rpcerror.CodeStopping, Message: errStopping.Error(), Ran: ran}
}
