package rollout

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/progress"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// loop steps until what the plan names is settled, and returns why it ended.
func (r *Rollout) loop(soft, hard context.Context) error {
	if r.Options.Timeout > 0 {
		var cancel context.CancelFunc
		soft, cancel = context.WithTimeoutCause(soft, r.Options.Timeout, errTimeout)
		defer cancel()
	}
	var failing error
	var wrong hcl.Diagnostics
	failures := 0
	for soft.Err() == nil {
		next, err := r.Executor.Step(hard)
		switch {
		case errors.Is(err, apply.ErrStateMoved), errors.Is(err, store.ErrLeaseLost):
			return err
		case errors.As(err, &wrong):
			return r.Terminal.Diagnostics(r.Loaded.Source.Files(), wrong) // with the values that are known now
		case err != nil:
			// One look that failed says nothing; many in a row do.
			failing = err
			if failures++; failures > 5 {
				return failing
			}
			next = time.Second
		default:
			failures = 0
			done, again := r.done()
			if done {
				return nil
			}
			if again {
				continue
			}
			if r.blocked() {
				return errBlocked
			}
		}
		r.progress.Remind(r.waiting())
		r.Executor.Wait(soft, next)
	}
	if cause := context.Cause(soft); errors.Is(cause, errTimeout) {
		return errTimeout
	}
	if r.handedOver.Load() {
		return &terminal.Exit{Code: terminal.ExitInterrupted, Msg: "interrupted; the controller goes on with it"}
	}
	return &terminal.Exit{Code: terminal.ExitInterrupted, Msg: "interrupted; the next fray " + r.verb() + " picks up from here"}
}

// done reports whether nothing is left that this change waits for, or whether to look
// again at once. What the plan of the last step names may be what that step did: a
// change of the records, or a find that was taken in. Left is what the plan after it
// names as well. A controller leaves nothing and records what it did a little later,
// so that is waited for.
func (r *Rollout) done() (done, again bool) {
	before, looked := r.left, r.settledBefore
	r.left, r.settledBefore = nil, r.settled()
	if !r.settledBefore {
		return false, false
	}
	r.left = r.unfinished()
	switch {
	case len(r.left) == 0:
		return true, false
	case r.handedOver.Load():
		return false, false
	}
	return looked && progress.ReasonLines(before) == progress.ReasonLines(r.left), !looked
}

// settled reports whether everything the plan names is as it should be.
func (r *Rollout) settled() bool {
	return r.quiet() && len(r.awaited()) == 0 && r.ended(nil)
}

// answersFor reports whether this change waits for an address and fails with it:
// with targets, for those and what they depend on; what programs launched is
// theirs, unless it is to go or was asked for.
func (r *Rollout) answersFor(addr schema.Address) bool {
	if r.chosen != nil && !r.chosen(addr) {
		return false
	}
	if !addr.IsLaunched() || r.Destroying || r.Stopping {
		return true
	}
	contains := func(a schema.Address) bool { return a.Contains(addr) }
	return slices.ContainsFunc(r.Change.Targets, contains) || slices.ContainsFunc(r.Change.Replace, contains)
}

// awaited is what still waits of what this change answers for.
func (r *Rollout) awaited() []plan.Pending {
	others := func(w plan.Pending) bool { return !r.answersFor(w.Addr) }
	return slices.DeleteFunc(r.scope.Pending(r.Executor.Last()), others)
}

// blocked reports whether nothing is left but what waits for jobs that failed
// or were stopped: no time will bring it about.
func (r *Rollout) blocked() bool {
	pending := r.awaited()
	unblocked := func(w plan.Pending) bool { return !w.Blocked }
	return r.quiet() && len(pending) > 0 && !slices.ContainsFunc(pending, unblocked) && r.ended(pending)
}

// quiet reports whether nothing is done or about to be done: of a controller's
// actions, nothing that this change answers for. While a slice is on its way out, or
// it is not known whether one is there, there may be something to do at any time.
func (r *Rollout) quiet() bool {
	due := func(a plan.Action) bool { return !r.handedOver.Load() || r.answersFor(a.Addr) }
	return r.Executor.Idle() && !slices.ContainsFunc(r.Executor.Last().Actions, due) && len(r.unsure()) == 0
}

// unsure are the slices on their way out that this change answers for, and those of
// which it is not known whether they are there. A destroy of everything is over once
// no slice is recorded.
func (r *Rollout) unsure() []plan.Pending {
	last := r.Executor.Last()
	var out []plan.Pending
	add := func(addr schema.Address, text string) {
		if r.answersFor(addr) {
			out = append(out, plan.Pending{Addr: addr, Kind: plan.WaitUnderway, Reasons: []string{text}, Underway: true})
		}
	}
	for _, s := range r.scope.Leaving(last) {
		add(s.Spec.Owner, "slice "+s.Spec.Name+" is being deleted: "+s.Terminating.Text)
	}
	for _, d := range r.scope.Doubts(last) {
		add(d.Slice.Owner, "it is being confirmed whether slice "+d.Slice.Name+" is as its provider lists it")
	}
	if len(out) == 0 && r.Destroying && r.Change.UnlaunchAll && last.Next != nil {
		for name, s := range last.Next.Slices {
			add(s.Spec.Owner, "slice "+name+" is still recorded")
		}
	}
	return out
}

// ended reports whether the jobs that --wait=complete follows have ended, but
// for some that need not.
func (r *Rollout) ended(but []plan.Pending) bool {
	if r.Options.Wait != waitComplete || r.Destroying {
		return true
	}
	for addr, j := range r.Executor.Document().Jobs {
		excused := slices.ContainsFunc(but, func(w plan.Pending) bool { return w.Addr == addr })
		if r.scope.Names(addr) && r.answersFor(addr) && !excused && !j.Status.Ended() && !j.Spec.IsService() {
			return false
		}
	}
	return true
}
