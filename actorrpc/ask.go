package actorrpc

import (
	"context"
	"errors"
	"time"

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

// insist asks until there is an answer. It asks again where the server could not be
// reached or is leaving, as one that does not know a new leader's authority yet breaks
// the connection, at any point of the greeting. Once ctx ends the error is the last
// server's.
func insist[T any](ctx context.Context, try func() (T, error)) (T, error) {
	var last error
	for failures := 1; ; failures++ {
		answer, err := try()
		switch {
		case err == nil || ctx.Err() != nil && last == nil:
			return answer, err
		case ctx.Err() != nil:
			return answer, last
		case !passing(err):
			return answer, err
		}
		last = err
		wait := time.NewTimer(backoff(failures))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return answer, last
		}
	}
}

// passing reports whether a question's error may be over when it is asked again.
func passing(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Code == CodeUnavailable || e.Code == CodeStopping)
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
