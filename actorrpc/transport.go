package actorrpc

import (
	"context"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// transport takes calls to one server.
type transport interface {
	// ready connects, where that is needed. Many may wait for one attempt.
	ready(ctx context.Context) error
	// submit undertakes to see a call through, unless there is no connection. It does
	// not block. Then flush is to follow, outside of locks.
	submit(d *delivery) bool
	flush()
	// throttle waits while the server has as many calls as it takes, or until done.
	throttle(done <-chan struct{})
	// withdraw ends a call that its caller gave up, and reports whether it may have arrived.
	withdraw(d *delivery) (mayHaveArrived bool)
	// taken reports how many items of a call's stream its caller has taken.
	taken(d *delivery, items uint64)
	// process is the name of the process that answers there, by its Hello; "": not known.
	process() string
	// hold holds the unanswered calls that were sent to an actor's endpoint: it may
	// reject them, and then they come before others.
	hold(actor locator, e resolver.Endpoint)
	// methods asks what methods an actor has.
	methods(ctx context.Context, name string) (*wire.ListMethodsResponse, error)
	// actors asks what actors there are whose names begin with a prefix.
	actors(ctx context.Context, prefix string) ([]*wire.Actor, error)
	// retire calls forget if the transport is of no use now. Then ready fails with errRetired.
	retire(forget func())
}
