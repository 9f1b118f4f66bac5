package actorrpc

import (
	"context"
	"time"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// verdictTime is how long a call that may have run waits for whether its actor is dead for good. The
// cluster decides that once the task's host has reported its end.
const verdictTime = 5 * time.Second

// awaitVerdict ends a call that may have run and is not sent again: once it is known whether its
// actor is dead for good, or at once where no resolver knows, and where the server may live. It
// needs the lock.
func (a *actor) awaitVerdict(c *call, lives bool) {
	if _, known := a.resolver.(resolver.Coroner); !known || lives {
		c.fail(c.loss)
		return
	}
	c.needsVerdict, c.findBy = true, time.Now().Add(verdictTime)
	a.enqueue(c)
}

// failLost ends calls that wait for a verdict: their actor is not dead. It needs the lock.
func (a *actor) failLost(selected func(*call) bool) {
	a.queue.filter(func(c *call) bool {
		if !c.needsVerdict || !selected(c) {
			return false
		}
		c.fail(c.loss)
		return true
	})
}

// restarted ends calls that wait for a verdict of another run of the actor than is there now.
func (a *actor) restarted(now resolver.Endpoint) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failLost(func(c *call) bool { return !c.endpoint.Still(now) })
}

// undecided reports whether a call that may have run must not be sent yet. It needs the actor's lock.
func (c *call) undecided() bool { return c.needsDeclaration || c.needsVerdict }

// missing is why the actor has no endpoint, or the member of its name that is meant.
func (a *actor) missing(ctx context.Context) error {
	if r, ok := a.resolver.(resolver.Coroner); ok {
		return r.Missing(ctx, a.key.name, a.key.member)
	}
	return rpcerror.UnknownActorOf(a.key.name, nil)
}
