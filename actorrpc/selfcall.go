package actorrpc

import (
	"context"
	"time"

	"github.com/fray-ml/fray/actorrpc/internal/lane"
)

// SelfCallError is of a call that can begin only once the method has returned which waits
// for it. So it is where a method calls its own actor, which runs one at a time, or calls
// another that calls back so.
//
// It is noticed where it is certain: the methods wait by [Call], [CallRaw], [Broadcast]
// or [Future.Result], with the contexts that they were given (or such as only add values), and
// the calls of a chain are of one [Client]. A context with a deadline or a cancel of its own, and one of
// [context.WithoutCancel], may be for what goes on beside the method. Such calls wait.
type SelfCallError struct {
	Busy *Error // of [CodeBusy]
}

func (e *SelfCallError) Error() string { return e.Busy.Error() }

// Unwrap is the error as others see it.
func (e *SelfCallError) Unwrap() error { return e.Busy }

// lookAgain is after how long one who waits for a call looks again whether it is for itself.
const lookAgain = 100 * time.Millisecond

// waiters are the runs that wait for a call which is made with a context: the one that has the context,
// and those that wait for that one.
func (c *Client) waiters(ctx context.Context) []lane.Run {
	r := lane.Own(ctx)
	if r == nil {
		return nil
	}
	all := []lane.Run{r}
	peer, seq := r.Caller()
	if seq == 0 {
		return all
	}
	if made := c.transports.unanswered(peer, seq); made != nil {
		return append(all, made.waiters...)
	}
	return all
}

// behind reports whether the call, which a run made, was sent to where that holds it up.
func (c *call) behind(r lane.Run) bool {
	c.actor.mu.Lock()
	defer c.actor.mu.Unlock()
	return c.via != nil && r.HoldsUp(c.to(c.via.process()))
}

// wait waits until the call is done. The error is why it did not; the call goes on.
func (c *call) wait(ctx context.Context) error {
	select {
	case <-c.done:
		return nil
	default:
	}
	var again <-chan time.Time
	own := lane.Own(ctx)
	if own == nil || c.made != own {
		own = nil
	} else {
		look := time.NewTicker(lookAgain)
		defer look.Stop()
		again = look.C
	}
	for {
		if own != nil && c.behind(own) {
			return c.named(selfCall([]lane.Run{own}, true)).typed()
		}
		select {
		case <-c.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-again:
		}
	}
}

// typed is the error as callers get it.
func (e *Error) typed() error {
	if e.selfCall {
		return &SelfCallError{e}
	}
	return e
}
