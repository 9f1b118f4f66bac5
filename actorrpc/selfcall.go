package actorrpc

import (
	"context"
	"maps"
	"slices"
	"strings"
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
	c.mu.Lock()
	servers := slices.Collect(maps.Values(c.servers))
	c.mu.Unlock()
	for _, s := range servers {
		if made := s.unanswered(peer, seq); made != nil {
			return append(all, made.waiters...)
		}
	}
	return all
}

// unanswered is the call of a number that this client made by a name; nil: it has none, or the answer.
func (s *server) unanswered(peer string, seq uint64) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil || s.link.caller != peer {
		return nil
	}
	return s.window.at(seq)
}

// behindWaiter fails a call that is about to be sent to a process, if one of those who wait for it
// holds it up, and reports whether.
func (c *call) behindWaiter(process string) bool {
	for i, r := range c.waiters {
		if r.HoldsUp(c.to(process)) {
			c.fail(selfCall(c.waiters[:i+1], false))
			return true
		}
	}
	return false
}

// to is where the call goes. It needs the actor's lock.
func (c *call) to(process string) lane.Call {
	return lane.Call{Process: process, Actor: c.endpoint.Name, Incarnation: c.endpoint.Incarnation, Method: c.method}
}

// behind reports whether the call, which a run made, was sent to where that holds it up.
func (c *call) behind(r lane.Run) bool {
	c.actor.mu.Lock()
	defer c.actor.mu.Unlock()
	return c.via != nil && r.HoldsUp(c.to(c.via.peer()))
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

// selfCall is the error of a call that the last of the runs holds up, and the first was to make.
func selfCall(runs []lane.Run, sent bool) *Error {
	_, method := runs[len(runs)-1].Names()
	var through []string
	for _, r := range slices.Backward(runs[:len(runs)-1]) {
		actor, method := r.Names()
		through = append(through, ", through "+actor+"."+method)
	}
	text := "the actor's own " + method + " waits for it" + strings.Join(through, "") + ", and one of the two runs at a time"
	if sent {
		text += "; it begins when " + method + " has returned"
	}
	text += ": call the method of the value itself, do not wait for it, or register the actor with a MaxConcurrency of 2 or more, " +
		"or give the method a Group of its own"
	return &Error{Code: CodeBusy, Message: text, Ran: sent, selfCall: true}
}

// typed is the error as callers get it.
func (e *Error) typed() error {
	if e.selfCall {
		return &SelfCallError{e}
	}
	return e
}

func (s *server) peer() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}
