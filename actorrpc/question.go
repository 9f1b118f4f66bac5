package actorrpc

import (
	"context"
	"sync"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// questions are those that a server has not answered yet. The zero value has none.
type questions struct {
	mu      sync.Mutex // guards all of it
	id      uint64
	answers map[uint64]chan *wire.Frame
}

// add makes room for an answer.
func (q *questions) add() (id uint64, answer <-chan *wire.Frame) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.answers == nil {
		q.answers = map[uint64]chan *wire.Frame{}
	}
	q.id++
	room := make(chan *wire.Frame, 1)
	q.answers[q.id] = room
	return q.id, room
}

func (q *questions) remove(id uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.answers, id)
}

// deliver hands an answer to the caller that asked, if it still waits.
func (q *questions) deliver(id uint64, f *wire.Frame) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if answer, ok := q.answers[id]; ok {
		delete(q.answers, id)
		answer <- f
	}
}

// ask sends a question and waits for its answer.
func (c *connection) ask(ctx context.Context, question func(id uint64) *wire.Frame) (*wire.Frame, error) {
	id, answer := c.questions.add()
	defer c.questions.remove(id)
	if err := c.wire.Send(question(id), nil, nil); err != nil {
		return nil, unavailable(c.address, err)
	}
	select {
	case f := <-answer:
		return f, nil
	case <-c.over:
		return nil, unavailable(c.address, errNotConnected)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// methods asks what methods an actor has.
func (c *connection) methods(ctx context.Context, name string) (*wire.ListMethodsResponse, error) {
	f, err := c.ask(ctx, func(id uint64) *wire.Frame {
		return &wire.Frame{Kind: &wire.Frame_ListMethods{ListMethods: &wire.ListMethodsRequest{Actor: name, Id: id}}}
	})
	if err != nil {
		return nil, err
	}
	if err := rpcerror.FromWire(f.GetMethods().GetError()); err != nil {
		return nil, err
	}
	return f.GetMethods(), nil
}

// actors asks what actors a server has.
func (c *connection) actors(ctx context.Context, prefix string) ([]*wire.Actor, error) {
	f, err := c.ask(ctx, func(id uint64) *wire.Frame {
		return &wire.Frame{Kind: &wire.Frame_ListActors{ListActors: &wire.ListActorsRequest{Prefix: prefix, Id: id}}}
	})
	return f.GetActors().GetActors(), err
}
