package actorrpc

import (
	"context"
	"slices"
	"time"

	"github.com/fray-ml/fray/actorrpc/internal/backoff"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// declaration is what an actor's server has declared of a method.
type declaration int

const (
	declarationUnknown declaration = iota
	declaredIdempotent
	declaredRetries
	declaredNot
)

// declaredOptions are those of a method.
type declaredOptions struct {
	idempotent bool
	retries    int
}

// rejection is an answer that sends the actor's calls elsewhere, or asks for patience.
type rejection struct {
	endpoint resolver.Endpoint
	err      *rpcerror.Error
	until    time.Time // nothing is sent there before
}

// answered takes the server's answer to a call.
func (a *actor) answered(c *call, reply *wire.Reply, results [][]byte) {
	err := rpcerror.FromWire(reply.GetError())
	if err == nil {
		a.noteIncarnation(c, reply.GetIncarnation())
		c.settled()
		c.finish(reply, results, nil)
		return
	}
	switch {
	case err.Code == rpcerror.CodeCancelled && a.isDropped(c):
		c.settled() // its caller, which has asked for that, ends it with the reason
	case !err.Ran && resendable(err.Code):
		a.resend(c, err)
	case err.Code == rpcerror.CodeMaybeExecuted:
		a.unanswered(c, err, true)
	case err.Code == rpcerror.CodeApplication && a.runAgain(c, err, reply.GetError().GetRetry()):
	default:
		a.noteIncarnation(c, reply.GetIncarnation())
		c.settled()
		a.mu.Lock()
		err.Ran = err.Ran || c.loss != nil
		a.mu.Unlock()
		c.fail(err)
	}
}

// isDropped reports whether the caller of a call has given it up.
func (a *actor) isDropped(c *call) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return c.dropped
}

// resendable are the codes of calls that did not run and may elsewhere or later.
func resendable(code rpcerror.Code) bool {
	switch code {
	case rpcerror.CodeStale, rpcerror.CodeStopping, rpcerror.CodeUnknownActor, rpcerror.CodeBusy:
		return true
	case rpcerror.CodeApplication, rpcerror.CodeUnknownMethod, rpcerror.CodeBadArguments, rpcerror.CodeEncoding, rpcerror.CodeTooLarge, rpcerror.CodeMalformed, rpcerror.CodeVersion, rpcerror.CodeDeadline,
		rpcerror.CodeCancelled, rpcerror.CodeMaybeExecuted, rpcerror.CodeDenied, rpcerror.CodeInternal, rpcerror.CodeUnavailable,
		rpcerror.CodeActorDead:
	}
	return false
}

// noteIncarnation notes who answered, where the resolver did not know.
func (a *actor) noteIncarnation(c *call, incarnation string) {
	if a.rejections.Load() != 0 {
		a.rejections.Store(0)
	}
	if c.endpoint.Incarnation != "" || incarnation == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.endpoint.Same(c.endpoint) {
		a.endpoint.Incarnation = incarnation
	}
}

// resend has a call that was rejected sent again, elsewhere or later, in order
// with those that are with the server still and may be rejected as well.
func (a *actor) resend(c *call, err *rpcerror.Error) {
	a.mu.Lock()
	if a.rejected == nil || !a.rejected.endpoint.Same(c.endpoint) {
		tries := a.rejections.Add(1)
		a.rejected = &rejection{endpoint: c.endpoint, err: err, until: time.Now().Add(backoff.After(int(tries)))}
		if err.Code != rpcerror.CodeBusy {
			a.resolver.Forget(a.key.name)
			c.via.hold(a, c.endpoint)
		}
	}
	c.rejection = err
	a.enqueue(c)
	a.mu.Unlock()
	c.settled()
}

// lost deals with a call that may have run, and whose answer will not come.
func (a *actor) lost(c *call, err *rpcerror.Error) { a.unanswered(c, err, c.silent) }

// unanswered deals with such a call; lives: its server may live, or knows what became of the actor.
func (a *actor) unanswered(c *call, err *rpcerror.Error, lives bool) {
	a.mu.Lock()
	defer c.settled()
	c.loss = err
	switch {
	case c.dropped: // its caller ends it with the reason
	case c.inbox.begun(): // what its loop has had is not taken back
		a.awaitVerdict(c, lives)
	case c.repeatable():
		c.findBy = time.Time{}
		a.enqueue(c)
	case a.declaration(c.method) == declaredNot || c.sends >= maxSends:
		a.awaitVerdict(c, lives)
	default:
		c.needsDeclaration, c.findBy = true, time.Time{}
		a.enqueue(c)
	}
	a.mu.Unlock()
}

// runAgain has a call whose method returned an error, or raised, sent once more, if it is to be, and
// reports whether it is. It comes before calls that were not sent; those that were do not wait for it. A stream
// of which items have come is not made again: what its loop has had is not taken back.
func (a *actor) runAgain(c *call, err *rpcerror.Error, declared *wire.Retry) bool {
	selected := declared.GetMatches()
	if c.options.RetryErrors != nil {
		selected = c.options.RetryErrors.selects(err)
	}
	a.mu.Lock()
	if !selected || c.dropped || c.inbox.begun() || !c.retry(int(declared.GetRetries())) {
		a.mu.Unlock()
		return false
	}
	c.loss, c.findBy, c.sends = err, time.Time{}, 0
	a.enqueue(c)
	a.mu.Unlock()
	c.settled()
	return true
}

// declaration is what is known of a method. It needs the lock.
func (a *actor) declaration(method string) declaration {
	if a.declared == nil {
		return declarationUnknown
	}
	switch d := a.declared[method]; {
	case d.idempotent:
		return declaredIdempotent
	case d.retries > 0:
		return declaredRetries
	}
	return declaredNot
}

// repeatable reports whether the call's options have it sent again though it may have
// run, and uses one of its retries up if need be. It needs the actor's lock.
func (c *call) repeatable() bool {
	return c.sends < maxSends && (c.options.Idempotent || c.retry(0))
}

// retry uses one of the call's retries up, and reports whether there was one. The method declares so
// many. It needs the actor's lock.
func (c *call) retry(declared int) bool {
	if c.options.Retries != 0 {
		declared = c.options.Retries
	}
	if c.retried >= declared {
		return false
	}
	c.retried++
	return true
}

// repeatableAsDeclared reports whether what the method declares has the call sent again. It needs the
// actor's lock.
func (c *call) repeatableAsDeclared() bool {
	switch c.actor.declaration(c.method) {
	case declaredIdempotent:
		return true
	case declaredRetries:
		return c.retry(c.actor.declared[c.method].retries)
	case declarationUnknown, declaredNot:
	}
	return false
}

// failUnlessRepeatable fetches what methods declare, if calls that may have run depend on
// that, and fails those that are not to be sent again: others wait for them.
func (a *actor) failUnlessRepeatable(ctx context.Context, via transport, e resolver.Endpoint) {
	a.mu.Lock()
	a.failLost(func(*call) bool { return true }) // an actor answers here: it is not dead
	needed := slices.ContainsFunc(a.queue.calls, func(c *call) bool { return c.needsDeclaration })
	a.mu.Unlock()
	if !needed {
		return
	}
	err := a.fetchDeclarations(ctx, via, e)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue.filter(func(c *call) bool {
		if !c.needsDeclaration {
			return false
		}
		c.needsDeclaration = false
		if err == nil && c.repeatableAsDeclared() {
			return false
		}
		c.fail(c.loss)
		return true
	})
}

// fetchDeclarations asks an actor's server what its methods declare.
func (a *actor) fetchDeclarations(ctx context.Context, via transport, e resolver.Endpoint) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	listed, err := via.methods(ctx, e.Name)
	if err != nil {
		return err
	}
	declared := map[string]declaredOptions{}
	for _, m := range listed.GetMethods() {
		declared[m.GetName()] = declaredOptions{idempotent: m.GetIdempotent(), retries: int(m.GetRetries())}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.declared = declared
	return nil
}
