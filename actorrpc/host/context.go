package host

import (
	"context"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/internal/callchain"
)

// ActorContext is what a method can know of the call that it answers.
type ActorContext struct {
	Actor       string // the name that was called
	Incarnation string
	Method      string
	Group       string // the method's of Options.Groups; "": the actor's own
	Caller      string // the process that calls, random
	Trace       string // W3C traceparent, ""; spans that begin with the method's context belong to it
	Namespace   string
	JobID       string
	Task        int
	Address     string // of this server
	// Client calls other actors: Config.Client. The method's context takes its
	// deadline along.
	Client *actorrpc.Client
}

type contextKey struct{}

// FromContext is of the call that a method answers; outside of one it is zero.
func FromContext(ctx context.Context) ActorContext {
	if c, ok := ctx.Value(contextKey{}).(*call); ok {
		s := c.server
		return ActorContext{
			Actor: c.actor.name, Incarnation: c.actor.incarnation, Method: c.method.name, Group: c.method.options.Group, Caller: c.caller, Trace: c.in.GetTrace(),
			Namespace: s.cfg.Namespace, JobID: s.cfg.JobID, Task: s.cfg.Task, Address: s.Address(),
			Client: s.cfg.Client,
		}
	}
	return ActorContext{}
}

// methodContext is a context that knows its call.
type methodContext struct {
	context.Context
	call *call
}

func (c methodContext) Value(key any) any {
	switch key.(type) {
	case contextKey:
		return c.call
	case callchain.Key:
		return c
	}
	return c.Context.Value(key)
}

var _ callchain.Run = methodContext{}

// HoldsUp reports whether a call is for the concurrency group that this one's method fills.
func (c methodContext) HoldsUp(to callchain.Call) bool {
	s, box := c.call.server, c.call.method.box
	if to.Process != "" && to.Process != s.peer || box.maxConcurrency > 1 || s.stopping.Load() || !c.call.is(phaseRuns) {
		return false
	}
	a := s.actor(to.Actor) // of calls for elsewhere there is none: they are not to cost a search
	if a == nil || to.Incarnation != a.incarnation && (to.Incarnation != "" || to.Process == "") {
		return false
	}
	m, e := a.find(to.Method)
	return e == nil && m.box == box
}

// Caller is who made the call.
func (c methodContext) Caller() (peer string, seq uint64) { return c.call.caller, c.call.in.GetSeq() }

// Names are the actor's and the method's.
func (c methodContext) Names() (actor, method string) {
	return c.call.actor.name, c.call.method.name
}

// context is for the method; end is to be called after it.
func (c *call) context() (ctx context.Context, end func()) {
	traced := actorrpc.WithTrace(c.server.calls, c.in.GetTrace())
	cancellable, cancel := context.WithCancelCause(traced)
	end = func() { cancel(nil) }
	ctx = cancellable
	if !c.deadline.IsZero() {
		timed, stop := context.WithDeadline(ctx, c.deadline)
		ctx, end = timed, func() { stop(); cancel(nil) }
	}
	c.mu.Lock()
	c.cancel = cancel
	c.mu.Unlock()
	return methodContext{ctx, c}, end
}

// deadlineOf is when a call that arrives now is late.
func deadlineOf(now time.Time, timeout uint64) time.Time {
	if timeout == 0 {
		return time.Time{}
	}
	const century = uint64(100 * 365 * 24 * time.Hour)
	return now.Add(time.Duration(min(timeout, century)))
}
