// Package callchain is what a context knows of the method that it was made for: which
// calls could begin only once that has returned. Package host puts a [Run] into the
// contexts of methods, package actorrpc finds it there.
package callchain

import "context"

// Run is one run of a method.
type Run interface {
	// HoldsUp reports whether a call can begin only once the run has ended.
	HoldsUp(to Call) bool
	// Done is of the method's own context, which ends with the run.
	Done() <-chan struct{}
	// Caller is who made the call that it answers, as Handshake.peer has it, and the call's number; 0: it has none.
	Caller() (peer string, seq uint64)
	// Names are the actor's and the method's.
	Names() (actor, method string)
}

// Call is where a call goes.
type Call struct {
	Process     string // Handshake.peer of the server, "": not known
	Actor       string
	Incarnation string // "": not known
	Method      string
}

// Key is that of a context's [Run].
type Key struct{}

// Of is the run whose method a context was made for, nil without one. The context may
// outlast it.
func Of(ctx context.Context) Run {
	r, _ := ctx.Value(Key{}).(Run)
	return r
}

// Own is the run whose method has this context, or one that adds values to it: it ends when the
// run does. It is nil of contexts with an end of their own, which [context.WithoutCancel]
// may be behind.
func Own(ctx context.Context) Run {
	if r := Of(ctx); r != nil && r.Done() == ctx.Done() {
		return r
	}
	return nil
}
