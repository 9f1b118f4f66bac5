package actorrpc

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fray-ml/fray/actorrpc/internal/backoff"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// wake has seek try again at once.
func (a *actor) wake() {
	select {
	case a.retryNow <- struct{}{}:
	default:
	}
}

// pause waits, unless something happens that is worth another attempt.
func (a *actor) pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.retryNow:
	case <-ctx.Done():
	}
}

// seek finds the actor for the calls that wait, and sends them. There is one for
// an actor, however many calls need it.
func (a *actor) seek(ctx context.Context) {
	for failures := 0; ; {
		limit, ok := a.waiting(ctx)
		if !ok {
			return
		}
		within, cancel := context.WithDeadline(ctx, limit)
		done, err := a.findAndSend(within)
		cancel()
		if done {
			return
		}
		if err == nil {
			failures = 0
			continue
		}
		failures++
		a.failed(err)
		a.pause(ctx, min(backoff.After(failures), max(time.Until(limit), time.Millisecond)))
	}
}

// waiting fails the calls whose time to be sent is over. It reports until when the
// others are to be sent, and false, which ends seek, if there are none.
func (a *actor) waiting(ctx context.Context) (until time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	expired := false
	a.queue.filter(func(c *call) bool {
		switch {
		case c.finished.Load():
			return true
		case ctx.Err() != nil:
			c.fail(a.unsentError(c, errClientClosed()))
			return true
		case !now.Before(c.findBy):
			expired = true
			c.fail(a.unsentError(c, a.problem))
			return true
		}
		if until.IsZero() || c.findBy.Before(until) {
			until = c.findBy
		}
		return false
	})
	if expired { // the next call resolves afresh
		a.resolver.Forget(a.key.name)
		a.transport = nil
	}
	a.seeking = len(a.queue.calls) > 0
	return until, a.seeking
}

// unsentError is the error of a call that could not be sent.
func (a *actor) unsentError(c *call, problem *rpcerror.Error) *rpcerror.Error {
	switch {
	case c.loss != nil && problem != nil && problem.Code == rpcerror.CodeActorDead:
		return rpcerror.Died(problem)
	case c.loss != nil:
		return c.loss
	case problem != nil:
		return problem
	case c.rejection != nil:
		return c.rejection
	}
	return &rpcerror.Error{Code: rpcerror.CodeUnavailable, Message: "it was not found in time"}
}

// failed remembers why the actor is not found, and fails what waits if trying
// again is of no use.
func (a *actor) failed(err error) {
	problem, ok := errors.AsType[*rpcerror.Error](err)
	if !ok {
		problem = &rpcerror.Error{Code: rpcerror.CodeUnavailable, Message: err.Error()}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if death := deathIn(problem); death != nil && a.lastResolved.Address != "" {
		problem = death
	}
	if !errors.Is(err, context.DeadlineExceeded) || a.problem == nil {
		a.problem = problem
	}
	if !final(problem.Code) {
		if problem.Code == rpcerror.CodeUnknownActor && problem.Cause == nil { // it may come back
			a.failLost(func(*call) bool { return true })
		}
		return
	}
	a.resolver.Forget(a.key.name)
	a.queue.filter(func(c *call) bool {
		c.fail(a.unsentError(c, problem))
		return true
	})
}

// deathIn is why the actor is dead, if a resolver that knows of no such actor knows that. To
// calls of an actor that never was there it does not matter: it may be yet to come.
func deathIn(problem *rpcerror.Error) *rpcerror.Error {
	if problem.Code == rpcerror.CodeUnknownActor && problem.Cause != nil && problem.Cause.Code == rpcerror.CodeActorDead {
		return problem.Cause
	}
	return nil
}

// findAndSend tries once to find the actor and to send all that waits, and reports
// whether that is done. With neither that nor an error, there is something new.
func (a *actor) findAndSend(ctx context.Context) (done bool, err error) {
	if a.unsettled.Load() > 0 { // calls that come before these are not settled
		a.pause(ctx, time.Hour)
		return false, nil
	}
	endpoint, err := a.find(ctx)
	if err != nil {
		return false, err
	}
	a.restarted(endpoint)
	if wait := a.rejectedAt(endpoint); wait > 0 {
		a.pause(ctx, wait)
		return false, nil
	}
	via, err := a.transports.to(endpoint)
	if err != nil {
		return false, err
	}
	if err := via.ready(ctx); errors.Is(err, errRetired) {
		return false, nil
	} else if err != nil {
		a.resolver.Forget(a.key.name)
		a.mu.Lock()
		a.unreachable = endpoint
		a.mu.Unlock()
		return false, err
	}
	if a.holdCallsOfFormer(endpoint) {
		return false, nil
	}
	a.failUnlessRepeatable(ctx, via, endpoint)
	if !a.sendBacklog(via, endpoint) {
		return false, nil
	}
	// So that a call that is lost need not wait for the actor's return to be reported.
	a.tasks.Run(func(ctx context.Context) { _ = a.fetchDeclarations(ctx, via, endpoint) })
	return true, nil
}

// find resolves the actor's name to one endpoint.
func (a *actor) find(ctx context.Context) (resolver.Endpoint, error) {
	endpoints, err := a.resolver.Resolve(ctx, a.key.name)
	if err != nil {
		if a.key.member != "" && rpcerror.CodeOf(err) == rpcerror.CodeUnknownActor {
			err = a.missing(ctx) // others of the name may be yet to come
		}
		return resolver.Endpoint{}, err
	}
	if a.key.member != "" {
		endpoints = slices.DeleteFunc(endpoints, func(e resolver.Endpoint) bool { return e.Member != a.key.member })
	}
	if len(endpoints) == 0 {
		return resolver.Endpoint{}, a.missing(ctx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	usable := slices.DeleteFunc(slices.Clone(endpoints), func(e resolver.Endpoint) bool {
		return a.unreachable.Same(e) || a.rejected != nil && a.rejected.covers(e)
	})
	if len(usable) == 0 {
		return endpoints[len(endpoints)-1], nil
	}
	if i := slices.IndexFunc(usable, a.endpoint.Still); i >= 0 {
		return usable[i], nil // no reason to go to another
	}
	return usable[len(usable)-1], nil
}

// covers reports whether an endpoint is the one that rejected a call.
func (r *rejection) covers(e resolver.Endpoint) bool {
	if !r.endpoint.At(e) {
		return false
	}
	return e.Incarnation == r.endpoint.Incarnation || e.Incarnation == "" && r.err.Code != rpcerror.CodeStale
}

// rejectedAt is how long to wait before an endpoint that rejected a call is tried again.
// If it does not know the actor, and the resolver knows no other place, the calls that it
// rejected have failed.
func (a *actor) rejectedAt(e resolver.Endpoint) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rejected == nil || !a.rejected.covers(e) {
		return 0
	}
	if a.rejected.err.Code != rpcerror.CodeUnknownActor {
		return time.Until(a.rejected.until)
	}
	a.rejected = nil
	a.queue.filter(func(c *call) bool {
		rejected := c.rejection != nil && c.rejection.Code == rpcerror.CodeUnknownActor
		if rejected {
			c.fail(a.unsentError(c, c.rejection))
		}
		return rejected
	})
	return 0
}

// holdCallsOfFormer holds the calls that the former endpoint still has if the actor is
// elsewhere now, and reports whether there are any.
func (a *actor) holdCallsOfFormer(now resolver.Endpoint) bool {
	a.mu.Lock()
	last, former := a.lastTransport, a.endpoint
	if last == nil || former.Still(now) {
		a.mu.Unlock()
		return false
	}
	a.lastTransport = nil
	a.mu.Unlock()
	last.hold(a, former)
	return a.unsettled.Load() > 0
}

// sendBacklog sends what waits, and reports whether that was all.
func (a *actor) sendBacklog(via transport, endpoint resolver.Endpoint) bool {
	defer via.flush()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsettled.Load() > 0 || slices.ContainsFunc(a.queue.calls, (*call).undecided) {
		return false
	}
	a.transport, a.endpoint, a.lastTransport, a.lastResolved = via, endpoint, via, endpoint
	a.unreachable, a.rejected, a.problem = resolver.Endpoint{}, nil, nil
	all := a.queue.drain(func(c *call) bool { return c.dropped || c.finished.Load() || a.send(c) })
	a.seeking = !all
	return all
}
