package rollout

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/policies"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/savedplan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// How far apply follows what it started.
const (
	WaitReady    = "ready"
	WaitComplete = "complete"
)

// Rollout carries one change out: approve, accept, step until settled. Its stages hold the
// stage below: Rollout -> extent -> run -> leaseRun or controllerRun, and conclusion.
type Rollout struct {
	Terminal *terminal.Terminal
	Options  *Options
	Loaded   *configuration.Loaded
	Change   *proposal.Change
	// Destroying changes the messages, and that nothing may be left.
	Destroying bool
	// Stopping keeps the outputs and reports nothing about the rest.
	Stopping bool

	// Leads is that another rollout goes on with the change: of --json's documents this one prints the plan, and the result only
	// if it has failed. Carried is what it has carried out then.
	Leads   bool
	Carried *plan.Plan
	// Follows is what another rollout has carried out that led: this one prints the result alone, and that is of both. nil: none led.
	Follows *plan.Plan

	// handedOver: a controller carries the change out. Signals read it.
	handedOver atomic.Bool
	// checkSaved checks a saved plan against the state under the lease.
	checkSaved func(doc *state.Document) error
	// checkFound checks what is observed against a saved plan that records it.
	checkFound func(p *plan.Plan) error
}

// ApplySaved carries a saved plan out, if it still holds.
func (r *Rollout) ApplySaved(ctx context.Context, path string) error {
	sp, err := savedplan.Read(ctx, path)
	if err != nil {
		return err
	}
	if r.Loaded, r.Change, err = sp.Open(ctx, r.Terminal, path, r.Options.Options); err != nil {
		return err
	}
	if r.Change.Policies, err = policies.Load(r.Terminal, sp.PolicyDir(r.Loaded), r.Options.Policies); err != nil {
		return err
	}
	if err := sp.CheckPolicies(path, r.Change.Policies); err != nil {
		return err
	}
	r.Options.AutoApprove = true // it was reviewed
	// Read before this run takes it. A state without a lease was never changed.
	last, _ := store.ReadLease(ctx, r.Loaded.Stack.Store)
	r.checkSaved = func(doc *state.Document) error {
		return savedplan.Blame(sp.Check(path, doc, r.Loaded.Stack.Store), last)
	}
	r.checkFound = func(p *plan.Plan) error { return sp.CheckFound(path, p) }
	return r.Apply(ctx)
}

// Apply has the change approved, where that is asked for, and carries it out.
func (r *Rollout) Apply(ctx context.Context) error {
	r.Destroying = r.Destroying || r.Change.Mode == plan.ModeDestroy
	if r.Change.Mode == plan.ModeRefreshOnly {
		return r.refresh(ctx)
	}
	var shown *plan.Plan
	if !r.Options.AutoApprove {
		p, err := r.ask(ctx)
		if err != nil {
			return err
		}
		if r.unchanged(p) {
			return r.nothing(ctx)
		}
		shown = p
	}
	starting, finishing, stop := r.Terminal.Interruptible(ctx, r.interrupted, leavingAtOnce(r.verb()))
	defer stop()
	_, err := r.CarryOut(starting, finishing, shown)
	return err
}

// CarryOut does the work of apply: takes the lease, acts, and gives it back. Here and
// below it, starting and finishing are contexts: once starting ends nothing new is started,
// once finishing ends nothing is waited for. It returns the state as it was known last,
// nil if it was not read.
func (r *Rollout) CarryOut(starting, finishing context.Context, shown *plan.Plan) (*state.Document, error) {
	run := newRun(r)
	err := run.byControllerOrLease(starting, finishing, shown)
	if run.stepper == nil {
		return nil, err
	}
	return run.stepper.Document(), err
}

// verb is the command that carries this change out.
func (r *Rollout) verb() string {
	switch {
	case r.Change.Mode == plan.ModeRefreshOnly:
		return "apply --refresh-only"
	case r.Destroying:
		return "destroy"
	case r.Stopping:
		return "stop"
	}
	return "apply"
}

// confirm shows the plan that was not shown yet, and rejects another one than was
// approved, and one that policies deny.
func (r *Rollout) confirm(p, shown *plan.Plan) error {
	if err := r.approved(p, shown); err != nil {
		return err
	}
	return proposal.CheckPolicies(p)
}

// approved shows the plan that was not shown yet, and rejects another one than was approved.
func (r *Rollout) approved(p, shown *plan.Plan) error {
	if r.Stopping {
		return nil
	}
	p.Targets = r.Change.Targets
	switch {
	case shown != nil:
	case r.Follows != nil && r.Options.JSON:
		return nil
	case r.Destroying && p.Empty() && !r.Options.JSON:
		return nil // the summary reports it
	default:
		if err := proposal.Show(r.Terminal, r.Loaded, p, r.Options.JSON, false); err != nil {
			return err
		}
		return proposal.ShowBlocked(r.Terminal, r.Loaded, p)
	}
	if !reflect.DeepEqual(p.Changes, shown.Changes) || !reflect.DeepEqual(p.Outputs, shown.Outputs) || proposal.SameAmendments(p.Amendments, shown.Amendments) != nil {
		return errors.New("the stack changed while you were deciding, and the plan with it; nothing was done: run fray " + r.verb() + " again")
	}
	return nil
}

// interrupted is the message at the first Ctrl-C.
func (r *Rollout) interrupted() string {
	if r.handedOver.Load() {
		return "Interrupted: leaving the change to the controller."
	}
	return finishingSoftly
}

// finishingSoftly is the message of a change at the first Ctrl-C.
const finishingSoftly = "Interrupted: starting nothing new, finishing what is under way, saving. Again to leave at once."

// leavingAtOnce is the message at the second, with the verb that picks up.
func leavingAtOnce(verb string) string {
	return "Leaving at once. The next fray " + verb + " picks up from what it finds."
}

// AddressStrings are addresses as text.
func AddressStrings(addrs []schema.Address) []string {
	var texts []string
	for _, addr := range addrs {
		texts = append(texts, addr.String())
	}
	return texts
}
