package actorrpc

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// Stream calls a method that answers by a stream: one that returns an iter.Seq, or an
// iter.Seq2 of values and errors, or is a generator of Python. The arguments are as in [Call].
// The call is made when the loop begins, again by each loop. Leaving the loop cancels it.
//
// An error is the last of a stream, after all items that came before it. The method is at most
// [RPCOptions.StreamWindow] items ahead of the loop. A connection that breaks loses and
// doubles no item. Once an item has arrived the call is not made again where the server is
// lost, whatever the options allow: it ends with [CodeMaybeExecuted]. The timeout is for the whole stream.
func Stream[T any](ctx context.Context, h Handle, method string, args ...any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		c, err := h.encode(method, args)
		if err != nil {
			yield(none, err)
			return
		}
		c.inbox = newInbox(c.options)
		err = c.loop(ctx, h.client, func(one arrival) (more bool, err error) {
			var item T
			if err := decodeItem(h.client, c, one, &item); err != nil {
				return false, err
			}
			return yield(item, nil), nil
		})
		if err != nil {
			yield(none, err)
		}
	}
}

// Result is what a method returned, or one item of the stream by which it answers.
type Result struct {
	Value any // the tree, see package codec
	Item  bool
}

// Results calls a method whether it streams or not, and loops over the items or the one result.
func Results(ctx context.Context, h Handle, method string, args ...any) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		c, err := h.encode(method, args)
		if err != nil {
			yield(Result{}, err)
			return
		}
		c.inbox = newInbox(c.options)
		c.inbox.orOne = true
		err = c.loop(ctx, h.client, func(one arrival) (more bool, err error) {
			result := Result{Item: !one.whole}
			if err := decodeItem(h.client, c, one, &result.Value); err != nil {
				return false, err
			}
			return yield(result, nil), nil
		})
		if err != nil {
			yield(Result{}, err)
		}
	}
}

// loop makes the call and gives its items to a function, until that wants no more. The error
// is that of the call, or the function's.
func (c *call) loop(ctx context.Context, client *Client, each func(arrival) (more bool, err error)) error {
	c.waiters = client.waiters(ctx)
	ctx, cancel := c.within(ctx)
	defer cancel()
	c.actor.start(c, ctx.Done() == nil)
	defer func() {
		if !c.ended() {
			c.end(context.Canceled)
		}
	}()
	for {
		if ctx.Err() != nil {
			return c.cutShort(context.Cause(ctx))
		}
		over := c.ended()
		one, ack, ok := c.inbox.take()
		if ok {
			c.acknowledge(ack)
			if more, err := each(one); err != nil || !more {
				return err
			}
			continue
		}
		if over {
			<-c.done
			return c.last(each)
		}
		select {
		case <-c.inbox.ready:
		case <-c.done:
		case <-ctx.Done():
		}
	}
}

// cutShort ends the call, as its loop does before it has all items, and returns the error of that.
func (c *call) cutShort(cause error) error {
	c.end(cause)
	<-c.done
	if c.err != nil {
		return c.err.Typed()
	}
	err := &rpcerror.Error{Code: rpcerror.CodeCancelled, Message: "the loop was cancelled, and the stream had ended", Ran: true}
	if errors.Is(cause, context.DeadlineExceeded) {
		err.Code, err.Message = rpcerror.CodeDeadline, "the deadline passed, and the stream had ended"
	}
	return c.named(err)
}

// acknowledge reports to the server how many items were taken; 0: it need not know.
func (c *call) acknowledge(taken uint64) {
	if taken == 0 {
		return
	}
	c.actor.mu.Lock()
	via := c.via
	c.actor.mu.Unlock()
	if via != nil {
		via.taken(&c.delivery, taken)
	}
}

// last takes the reply after the items.
func (c *call) last(each func(arrival) (more bool, err error)) error {
	switch {
	case c.err != nil:
		return c.err.Typed()
	case !c.reply.GetStreamed() && c.inbox.orOne:
		_, err := each(arrival{c.reply.GetCodec(), c.reply.GetResult(), c.results, true})
		return err
	case !c.reply.GetStreamed():
		return c.named(&rpcerror.Error{Code: rpcerror.CodeEncoding, Message: "it returned one result and no stream: call it by actorrpc.Call", Ran: true})
	case c.reply.GetItems() != c.inbox.total():
		message := fmt.Sprintf("the stream ended after %d items, and %d have come", c.reply.GetItems(), c.inbox.total())
		return c.named(&rpcerror.Error{Code: rpcerror.CodeMalformed, Message: message, Ran: true})
	}
	return nil
}

// decodeItem reads one item of a stream, and makes handles of references.
func decodeItem[T any](client *Client, c *call, one arrival, into *T) error {
	item := &call{actor: c.actor, delivery: delivery{request: c.request}}
	item.reply, item.results = &wire.Reply{Codec: one.codec, Result: one.result}, one.buffers
	return decodeInto(client, item, into)
}
