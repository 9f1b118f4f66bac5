package actorrpc

import (
	"context"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// methods asks what methods an actor has.
func (s *server) methods(ctx context.Context, name string) (*wire.ListMethodsResponse, error) {
	f, err := s.ask(ctx, func(id uint64) *wire.Frame {
		return &wire.Frame{Kind: &wire.Frame_ListMethods{ListMethods: &wire.ListMethodsRequest{Actor: name, Id: id}}}
	})
	if err != nil {
		return nil, err
	}
	if err := ErrorOf(f.GetMethods().GetError()); err != nil {
		return nil, err
	}
	return f.GetMethods(), nil
}

// actors asks what actors a server has.
func (s *server) actors(ctx context.Context, prefix string) ([]*wire.Actor, error) {
	f, err := s.ask(ctx, func(id uint64) *wire.Frame {
		return &wire.Frame{Kind: &wire.Frame_ListActors{ListActors: &wire.ListActorsRequest{Prefix: prefix, Id: id}}}
	})
	return f.GetActors().GetActors(), err
}

// ask sends a question and waits for its answer.
func (s *server) ask(ctx context.Context, question func(id uint64) *wire.Frame) (*wire.Frame, error) {
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l == nil {
		return nil, unavailable(s.address, errNotConnected)
	}
	answer := make(chan *wire.Frame, 1)
	l.mu.Lock()
	l.id++
	id := l.id
	l.asked[id] = answer
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.asked, id)
	}()
	if err := l.conn.Send(question(id), nil, nil); err != nil {
		return nil, unavailable(s.address, err)
	}
	select {
	case f := <-answer:
		return f, nil
	case <-l.over:
		return nil, unavailable(s.address, errNotConnected)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// deliver gives an answer to who asked, if somebody still waits.
func (l *link) deliver(id uint64, f *wire.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer, ok := l.asked[id]; ok {
		delete(l.asked, id)
		answer <- f
	}
}
