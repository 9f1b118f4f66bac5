package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fray-ml/fray/apply"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/controller/pause"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/progress"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// leaseRun is a run under a lease of its own: its stepper steps.
type leaseRun struct {
	*run

	lease *store.Held
}

// underLease takes the lease, carries the change out, and gives the lease back.
func (r *run) underLease(starting, finishing context.Context, doc *state.Document, shown *plan.Plan) error {
	_, r.watched = r.Loaded.Stack.WatchLease(starting)
	// The first Ctrl-C ends the wait for the lease, but not the lease: that is
	// held until what is under way has ended. When it is lost everything ends.
	waiting, acquired := tied(finishing, starting)
	lease, err := r.Loaded.Stack.Acquire(waiting, doc, r.Options.LeaseTimeout)
	if err != nil {
		return terminal.Interrupted(starting, err)
	}
	l := &leaseRun{run: r, lease: lease}
	defer l.release()
	acquired()
	starting, _ = tied(lease.Context(), starting)
	runErr := l.planAndStep(starting, shown)
	if lost := l.lost(); lost != nil {
		return fmt.Errorf("stopped: %w; what is under way is left to the present leader", lost)
	}
	if runErr != nil && finishing.Err() != nil && !errors.Is(runErr, terminal.ErrReported) {
		// What was cut off has nothing to report beyond that.
		return &terminal.Exit{Code: terminal.ExitInterrupted, Msg: "interrupted; what was under way was not waited for"}
	}
	return runErr
}

// tied is a child of ctx that ends with other, too, until it is untied.
func tied(ctx, other context.Context) (child context.Context, untie func() bool) {
	child, end := context.WithCancelCause(ctx)
	return child, context.AfterFunc(other, func() { end(context.Cause(other)) })
}

// lost reports why the lease was lost and to whom, nil if it was not.
func (r *leaseRun) lost() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return r.lease.Lost(ctx)
}

// release ends the lease even when the run was interrupted.
func (r *leaseRun) release() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.lease.Release(ctx); err != nil && !errors.Is(err, store.ErrLeaseLost) {
		r.Terminal.Warn(fmt.Sprintf("the lease could not be released and lapses by itself in a few seconds: %v", err))
	}
}

// planAndStep does the work of apply while the lease is held: it prepares the
// stepper, proposes a plan, has it confirmed and accepted, and steps until it is
// carried out.
func (r *leaseRun) planAndStep(starting context.Context, shown *plan.Plan) error {
	finishing := r.lease.Context()
	all, err := r.unlock(starting)
	if err != nil {
		return err
	}
	r.progress = progress.New(r.Terminal)
	defer r.progress.Close()
	stepper, err := r.prepare(starting, all)
	if err != nil {
		return err
	}
	if r.Change.Mode == plan.ModeRefreshOnly {
		return r.recordRefresh(starting, stepper, shown)
	}
	r.stepper = stepper
	accepted, p, err := r.planUnderLease(starting, stepper)
	if err != nil {
		return err
	}
	if err := r.confirm(p, shown); err != nil {
		return err
	}
	if err := r.accept(starting, accepted, p); err != nil {
		return err
	}
	if err := r.settleKey(starting, stepper); err != nil {
		return err
	}
	defer apply.CollectLate()()
	err = r.finish(finishing, r.loop(starting, finishing), p)
	stepper.KeepRequests(finishing)
	r.pruneKeys(finishing)
	return err
}

// unlock finishes a rekey that died, and returns the providers.
func (r *leaseRun) unlock(starting context.Context) (map[schema.ProviderName]providers.Provider, error) {
	if err := r.Loaded.Stack.Keys.CheckUnchanged(starting); err != nil {
		return nil, terminal.Interrupted(starting, err)
	}
	w := apply.Rewriter{Store: r.Loaded.Stack.Store, Version: release.Version(), Epoch: r.lease.Epoch(), Valid: r.lease.Valid}
	if err := r.Loaded.Stack.FinishRekey(r.lease.Context(), w); err != nil {
		return nil, err
	}
	return r.Loaded.Stack.Providers(starting, r.Loaded.Desired.Providers, r.Loaded.Document)
}

// stepperConfig is what the stepper of this change works with. It is eager: the deletion of
// what is not needed any more waits for a save, which is not to take a second.
func (r *leaseRun) stepperConfig(all map[schema.ProviderName]providers.Provider) apply.Config {
	return apply.Config{
		Store: r.Loaded.Stack.Store, Providers: all, Version: release.Version(),
		Epoch: r.lease.Epoch(), Valid: r.lease.Valid, Parallelism: r.Options.Parallelism, Events: true, Eager: true,
		HostReasons: apply.HostReasons{Ask: true, After: apply.BootPatience},
		Certify:     clusterkeys.NewIssuer(r.Loaded.Stack.Store, r.lease.Epoch()).Certify,
		OnStep:      r.progress.Step,
		OnError:     r.progress.Failed,
		Refine:      r.Loaded.Refine(r.narrowing()),
	}
}

// prepare makes the stepper, and checks that the state which it has read may be
// changed from here.
func (r *leaseRun) prepare(starting context.Context, all map[schema.ProviderName]providers.Provider) (*apply.Stepper, error) {
	stepper, err := apply.New(starting, r.stepperConfig(all))
	if err != nil {
		return nil, terminal.Interrupted(starting, err)
	}
	r.Loaded.Document = stepper.Document()
	if r.checkSaved != nil {
		if err := r.checkSaved(r.Loaded.Document); err != nil {
			return nil, err
		}
	}
	if err := r.Loaded.Stack.CheckHere(r.Loaded.Document); err != nil {
		return nil, err
	}
	if r.Loaded.Document.Paused != nil {
		return nil, errors.New(pause.Text(r.Loaded.Document.Paused))
	}
	return stepper, nil
}

// narrowing keeps to the targets; nil if there are none.
func (r *leaseRun) narrowing() func(schema.Desired) schema.Desired {
	if len(r.Change.Targets) == 0 {
		return nil
	}
	return func(d schema.Desired) schema.Desired { return r.Change.Narrow(r.stepper.Document(), d) }
}

// planUnderLease returns what is to be accepted, and the plan of it.
func (r *leaseRun) planUnderLease(starting context.Context, stepper *apply.Stepper) (*state.Document, *plan.Plan, error) {
	doc, err := r.Change.Amender.MarkImports(starting, r.Loaded.Document, r.stepper.Accept)
	if err != nil {
		return nil, nil, err
	}
	amended, amendments, err := r.Change.Amender.Amend(starting, doc)
	if err != nil {
		return nil, nil, terminal.Interrupted(starting, err)
	}
	r.failedBefore = failedAttempts(amended)
	accepted := proposal.Accept(starting, r.Loaded, r.Change, amended)
	accepted.LocalPlace = r.Loaded.Stack.Place()
	if err := proposal.CheckPlaceable(r.Loaded, accepted); err != nil {
		return nil, nil, err
	}
	p, err := stepper.Preview(starting, &accepted.Desired, accepted)
	if err != nil {
		return nil, nil, terminal.Interrupted(starting, err)
	}
	p.Mode, p.Amendments = r.Change.Mode, amendments
	if err := proposal.ExplainPlan(starting, r.Loaded, p, r.Change, doc); err != nil {
		return nil, nil, err
	}
	if err := r.Change.Judge(r.Loaded, p, amended); err != nil {
		return nil, nil, err
	}
	accepted.Overrides = state.WithOverrides(accepted.Overrides, proposal.Overrides(p), accepted.Revision)
	return accepted, p, nil
}

// accept ships what a confirmed plan needs, and records what was accepted.
func (r *leaseRun) accept(starting context.Context, accepted *state.Document, p *plan.Plan) error {
	if err := r.Loaded.Upload(starting, r.progress.Line); err != nil {
		return terminal.Interrupted(starting, err)
	}
	if err := ShipAgent(starting, r.Loaded, accepted, r.progress.Upload); err != nil {
		return err
	}
	if !r.Change.KeepsRecorded {
		var err error
		if accepted.Recorded, err = r.recorder.record(starting); err != nil {
			return terminal.Interrupted(starting, err)
		}
	}
	r.setFromPlan(p)
	if r.chosen != nil {
		r.progress.Tells = r.answersFor
	}
	r.stepper.SetScope(r.scope)
	if err := r.stepper.Accept(starting, accepted); err != nil {
		return err
	}
	r.recorder.sweep(starting, accepted.Recorded)
	return nil
}

// settleKey has all of the state written as is declared now, and removes a key that nothing
// needs any more.
func (r *leaseRun) settleKey(starting context.Context, stepper *apply.Stepper) error {
	if r.Loaded.Stack.Keys.Note != "" { // whom the key is wrapped for, or whether it encrypts, has changed
		if err := stepper.Consolidate(starting); err != nil {
			return err
		}
	}
	return r.Loaded.Stack.Keys.Retire(starting)
}

// pruneKeys removes keys and authorities that have expired, as a controller does:
// where none runs they would stay for good. What is left over counts for nothing, and
// the next apply removes it, so that an error is none of the user's concern.
func (r *leaseRun) pruneKeys(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, prunePatience)
	defer cancel()
	_ = clusterkeys.PruneExpired(ctx, r.Loaded.Stack.Store, time.Now(), r.lease.Epoch())
}

// prunePatience bounds what an apply does for tidiness alone.
const prunePatience = 5 * time.Second
