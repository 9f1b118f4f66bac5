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

// run is a change that a stepper carries out, and how far it has come.
type run struct {
	extent

	stepper  Stepper
	progress *progress.Progress
	recorder *recorder
	// watched: a watch gave the lease and will take it back.
	watched bool
	// failedBefore are the jobs that had failed already, by their last attempt.
	failedBefore map[schema.Address]int
	// leftBefore is what the last plan names that nothing waits for, where with wasSettled
	// nothing else was left; see done.
	leftBefore []plan.Pending
	wasSettled bool
}

func newRun(r *Rollout) *run {
	return &run{extent: extent{Rollout: r}, recorder: newRecorder(r)}
}

// byControllerOrLease leaves the change to the controller that leads, or else takes the lease.
func (r *run) byControllerOrLease(starting, finishing context.Context, shown *plan.Plan) error {
	doc, err := r.Loaded.Stack.Load(starting)
	if err != nil {
		return terminal.Interrupted(starting, err)
	}
	if err := r.Loaded.Stack.CheckHere(doc); err != nil {
		return err
	}
	if done, err := r.throughController(starting, finishing, shown); done || err != nil {
		return err
	}
	return r.underLease(starting, finishing, doc, shown)
}

// loop steps until what the plan names is settled, and returns why it ended.
func (r *run) loop(starting, finishing context.Context) error {
	if r.Options.Timeout > 0 {
		var cancel context.CancelFunc
		starting, cancel = context.WithTimeoutCause(starting, r.Options.Timeout, errTimeout)
		defer cancel()
	}
	var failing error
	var wrong hcl.Diagnostics
	failures := 0
	for starting.Err() == nil {
		next, err := r.stepper.Step(finishing)
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
		r.stepper.Wait(starting, next)
	}
	if cause := context.Cause(starting); errors.Is(cause, errTimeout) {
		return errTimeout
	}
	if r.handedOver.Load() {
		return &terminal.Exit{Code: terminal.ExitInterrupted, Msg: "interrupted; the controller goes on with it"}
	}
	return &terminal.Exit{Code: terminal.ExitInterrupted, Msg: "interrupted; the next fray " + r.verb() + " picks up from here"}
}

// done reports whether nothing is left that this change waits for, or whether to step
// again at once. The plan of the last step may still name what that step did. So once all
// is settled it asks for one more step, and it is done if that plan names the same again.
// A controller records its step later, so that is waited for instead.
func (r *run) done() (done, again bool) {
	before, repeated := r.leftBefore, r.wasSettled
	r.leftBefore, r.wasSettled = nil, r.settled()
	if !r.wasSettled {
		return false, false
	}
	r.leftBefore = r.unfinished()
	switch {
	case len(r.leftBefore) == 0:
		return true, false
	case r.handedOver.Load():
		return false, false
	}
	return repeated && progress.ReasonLines(before) == progress.ReasonLines(r.leftBefore), !repeated
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
	return r.stepper.Idle() && !slices.ContainsFunc(r.stepper.Last().Actions, due) && len(r.unsure()) == 0
}

// ended reports whether the jobs that --wait=complete follows have ended, but
// for some that need not.
func (r *run) ended(but []plan.Pending) bool {
	if r.Options.Wait != WaitComplete || r.Destroying {
		return true
	}
	for addr, j := range r.stepper.Document().Jobs {
		excused := slices.ContainsFunc(but, func(w plan.Pending) bool { return w.Addr == addr })
		if r.scope.Names(addr) && r.answersFor(addr) && !excused && !j.Status.Ended() && !j.Spec.IsService() {
			return false
		}
	}
	return true
}
