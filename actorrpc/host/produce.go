package host

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"time"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// taking is which answers a caller takes.
type taking int

const (
	takesOne    taking = iota // a result
	takesStream               // a stream
	takesEither
)

// takingOf is what a call that came in a frame asks for. any: its caller takes streams
// also where the call does not say so.
func takingOf(in *wire.Call, any bool) taking {
	switch asked := in.GetStream(); {
	case asked == nil && !any:
		return takesOne
	case asked == nil || asked.GetOrOne():
		return takesEither
	}
	return takesStream
}

// unwanted is the error of a call whose caller takes another kind of answer than the method gives.
func (t taking) unwanted(m *method) *rpcerror.Error {
	switch {
	case m.streams && t == takesOne:
		return &rpcerror.Error{Code: rpcerror.CodeBadArguments, Message: "it answers by a stream: iterate over it, by actorrpc.Stream in Go, by InvokeStream in gRPC"}
	case !m.streams && t == takesStream:
		return &rpcerror.Error{Code: rpcerror.CodeBadArguments, Message: "it returns one result and no stream: call it by actorrpc.Call"}
	}
	return nil
}

// streamed reports whether a method's result is an iter.Seq, or an iter.Seq2 of values and errors.
func streamed(result reflect.Type) bool {
	if result.Kind() != reflect.Func {
		return false
	}
	return result.CanSeq() || result.CanSeq2() && result.In(0).In(1) == reflect.TypeFor[error]()
}

// pairs makes values and errors of the result of a method that streams.
func pairs(result reflect.Value) iter.Seq2[reflect.Value, error] {
	return func(yield func(reflect.Value, error) bool) {
		switch {
		case result.IsNil():
		case result.Type().CanSeq():
			for v := range result.Seq() {
				if !yield(v, nil) {
					return
				}
			}
		default:
			for v, e := range result.Seq2() {
				err, _ := reflect.TypeAssert[error](e)
				if !yield(v, err) {
					return
				}
			}
		}
	}
}

// produce runs the iterator that the method returned, and makes the reply that ends the stream.
func (c *call) produce(ctx context.Context, result reflect.Value) *answer {
	s := c.open()
	if !c.deadline.IsZero() {
		late := &rpcerror.Error{Code: rpcerror.CodeDeadline, Message: "the deadline passed while the method ran", Ran: true}
		defer time.AfterFunc(time.Until(c.deadline), func() { s.stop(late) }).Stop()
	}
	for v, err := range pairs(result) {
		if s.stoppedBy() != nil {
			break
		}
		if err != nil {
			return c.failed(methodError(ctx, err))
		}
		one, problem := c.item(v.Interface())
		if problem != nil {
			return c.failed(problem)
		}
		if !s.put(one) {
			break
		}
	}
	if why := s.stoppedBy(); why != nil {
		e := *why
		e.Ran = true
		return c.failed(&e)
	}
	return &answer{reply: &wire.Reply{Seq: c.in.GetSeq(), Codec: c.in.GetCodec(), Incarnation: c.actor.incarnation}}
}

// item encodes one result.
func (c *call) item(value any) (item, *rpcerror.Error) {
	data, buffers, err := c.method.shapes.EncodeResult(codec.Kind(c.in.GetCodec()), value)
	if err != nil {
		e := codecError(rpcerror.CodeEncoding, err)
		e.Ran = true
		return item{}, e
	}
	one := item{data, buffers}
	limit := c.server.cfg.MaxMessageBytes
	if c.itemLimit > 0 {
		limit = min(limit, c.itemLimit)
	}
	const frame = 256 // beside the item
	if size := uint64(one.size()) + frame; size > limit {
		e := tooLarge("an item of the stream is", size, limit)
		e.Ran = true
		return item{}, e
	}
	return one, nil
}

// open makes the stream of a call whose method has returned an iterator.
func (c *call) open() *stream {
	s := newStream(c.in, c.actor.incarnation)
	c.mu.Lock()
	c.stream = s
	over := c.phase != phaseRuns
	c.mu.Unlock()
	if over { // the server gave up on it meanwhile
		s.stop(stopping(true))
		return s
	}
	to, _ := c.to.(sink)
	if c.entry != nil {
		to = c.server.ledger.opened(c.entry, s)
	}
	if to == nil {
		return s
	}
	s.attach(to, c.in.GetStream())
	if to.left() {
		c.server.expire(c.entry, to)
	}
	return s
}

// streaming is the stream of the call, nil while it has none.
func (c *call) streaming() *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stream
}

// giveUp ends a stream whose caller will not ask for it again. Other calls go on.
func (c *call) giveUp() {
	if c.streaming() != nil {
		c.stop(&rpcerror.Error{Code: rpcerror.CodeCancelled, Message: "the caller gave the stream up", Ran: true})
	}
}

// expire ends a stream unless its caller comes back within the time after which a silent peer
// is asked whether it is there: it holds a place of its actor's concurrency.
func (s *Server) expire(e *entry, from sink) {
	if e == nil {
		return
	}
	away := s.cfg.Keepalive
	time.AfterFunc(away, func() {
		if c := s.ledger.abandoned(e, from); c != nil {
			c.stop(&rpcerror.Error{
				Code: rpcerror.CodeMaybeExecuted, Message: fmt.Sprintf("the stream was ended as its caller was away for over %s", away), Ran: true,
			})
		}
	})
}
