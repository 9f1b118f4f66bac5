package actorrpc

import (
	"context"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// transport takes calls to one server.
type transport interface {
	// ready connects, where that is needed. Many may wait for one attempt.
	ready(ctx context.Context) error
	// submit undertakes to see a call through, unless there is no connection. It does
	// not block. Then flush is to follow, outside of locks.
	submit(c *call) bool
	flush()
	// throttle waits while the server has as many calls as it takes, or until done.
	throttle(done <-chan struct{})
	// withdraw ends a call for which nobody waits any more, and reports whether it may have arrived.
	withdraw(c *call) (mayHaveArrived bool)
	// peer is who answers there, by its Handshake; "": not known.
	peer() string
	// hold holds the unanswered calls that were sent to an actor's endpoint: it may
	// refuse them, and then they come before others.
	hold(a *actor, e Endpoint)
	// methods asks what methods an actor has.
	methods(ctx context.Context, name string) (*wire.ListMethodsResponse, error)
	// actors asks what actors there are whose names begin with a prefix.
	actors(ctx context.Context, prefix string) ([]*wire.Actor, error)
}

var (
	_ transport = (*server)(nil)
	_ transport = (*general)(nil)
)

// declaration is what an actor's server says of a method.
type declaration int

const (
	declarationUnknown declaration = iota
	declaredIdempotent
	declaredNot
)
