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

// Why a loop ends before everything is settled.
var (
	errTimeout = errors.New("timeout")
	errBlocked = errors.New("what is left waits for jobs that have ended")
)

// run is a change that an executor carries out, and how far it has come.
type run struct {
	extent

	executor Executor
	progress *progress.Progress
	recorder *recorder
	// watched: a watch gave the lease and will take it back.
	watched bool
	// failedBefore are the jobs that had failed already, by their last attempt.
	failedBefore map[schema.Address]int
	// left is what the last plan names that nothing waits for, where with settledBefore
	// nothing else was left; see done.
	left          []plan.Pending
	settledBefore bool
}

func newRun(r *Rollout) *run {
	return &run{extent: extent{Rollout: r}, recorder: newRecorder(r)}
}

// carryOut leaves the change to the controller that leads, or else takes the lease.
func (r *run) carryOut(soft, hard context.Context, shown *plan.Plan) error {
	doc, err := r.Loaded.Stack.Load(soft)
	if err != nil {
		return terminal.Interrupted(soft, err)
	}
	if err := r.Loaded.Stack.CheckHere(doc); err != nil {
		return err
	}
	if done, err := r.throughController(soft, hard, shown); done || err != nil {
		return err
	}
	return r.underLease(soft, hard, doc, shown)
}

// loop steps until what the plan names is settled, and returns why it ended.
func (r *run) loop(soft, hard context.Context) error {
	if r.Options.Timeout > 0 {
		var cancel context.CancelFunc
		soft, cancel = context.WithTimeoutCause(soft, r.Options.Timeout, errTimeout)
		defer cancel()
	}
	var failing error
	var wrong hcl.Diagnostics
	failures := 0
	for soft.Err() == nil {
		next, err := r.executor.Step(hard)
		switch {
		case errors.Is(err, apply.ErrStateMoved), errors.Is(err, store.ErrLeaseLost):
			return err
		case errors.As(err, &wrong):
			return r.Terminal.Diagnostics(r.Loaded.Source.Files(), wrong) // with the values that are known now
		case err != nil:
			// One step that failed means nothing; many in a row do.
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
		r.executor.Wait(soft, next)
	}
	if cause := context.Cause(soft); errors.Is(cause, errTimeout) {
		return errTimeout
	}
	if r.handedOver.Load() {
		return &terminal.Exit{Code: terminal.ExitInterrupted, Msg: "interrupted; the controller goes on with it"}
	}
	return &terminal.Exit{Code: terminal.ExitInterrupted, Msg: "interrupted; the next fray " + r.verb() + " picks up from here"}
}

// done reports whether nothing is left that this change waits for, or whether to step
// again at once. What the plan of the last step names may be what that step did: a
// change of the records, or a find that was taken in. Left is what the plan after it
// names as well. A controller leaves nothing and records what it did a little later,
// so that is waited for.
func (r *run) done() (done, again bool) {
	before, repeated := r.left, r.settledBefore
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
	return repeated && progress.ReasonLines(before) == progress.ReasonLines(r.left), !repeated
}

// settled reports whether everything the plan names is as it should be.
func (r *run) settled() bool {
	return r.quiet() && len(r.awaited()) == 0 && r.ended(nil)
}

// blocked reports whether nothing is left but what waits for jobs that failed
// or were stopped: no time will bring it about.
func (r *run) blocked() bool {
	pending := r.awaited()
	unblocked := func(w plan.Pending) bool { return !w.Blocked }
	return r.quiet() && len(pending) > 0 && !slices.ContainsFunc(pending, unblocked) && r.ended(pending)
}

// quiet reports whether nothing is done or about to be done: of a controller's
// actions, nothing that this change answers for. While a slice is on its way out, or
// it is not known whether one is there, there may be something to do at any time.
func (r *run) quiet() bool {
	due := func(a plan.Action) bool { return !r.handedOver.Load() || r.answersFor(a.Addr) }
	return r.executor.Idle() && !slices.ContainsFunc(r.executor.Last().Actions, due) && len(r.unsure()) == 0
}

// ended reports whether the jobs that --wait=complete follows have ended, but
// for some that need not.
func (r *run) ended(but []plan.Pending) bool {
	if r.Options.Wait != waitComplete || r.Destroying {
		return true
	}
	for addr, j := range r.executor.Document().Jobs {
		excused := slices.ContainsFunc(but, func(w plan.Pending) bool { return w.Addr == addr })
		if r.scope.Names(addr) && r.answersFor(addr) && !excused && !j.Status.Ended() && !j.Spec.IsService() {
			return false
		}
	}
	return true
}
