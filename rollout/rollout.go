package rollout

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/apply"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/progress"
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
	waitComplete = "complete"
)

// Rollout carries one change out: approve, accept, step until settled.
type Rollout struct {
	Terminal *terminal.Terminal
	Options  *Options
	Loaded   *configuration.Loaded
	Change   *proposal.Change

	Executor Executor
	progress *progress.Progress
	scope    apply.Scope
	// chosen are the targets and what they depend on; nil: everything is meant.
	chosen func(schema.Address) bool
	// destroying changes the words, and that nothing may be left.
	Destroying bool
	// stopping keeps the outputs and says nothing about the rest.
	Stopping bool
	// handedOver says that a controller carries the change out.
	handedOver atomic.Bool
	// watched says that a watch gave the lease and will take it back.
	watched bool
	// failedBefore are the jobs that had failed already, by their last attempt.
	failedBefore map[schema.Address]int
	// saved checks a saved plan against the state under the lease.
	saved func(doc *state.Document) error
	// left is what the last plan names that nothing waits for, where settledBefore
	// says that nothing else was left; see done.
	left          []plan.Pending
	settledBefore bool
	// unrecorded says that it was told why the configuration is not recorded.
	unrecorded bool
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
	r.Options.AutoApprove = true // it was reviewed
	r.saved = func(doc *state.Document) error {
		return sp.Check(path, doc, r.Loaded.Stack.Store)
	}
	return r.Apply(ctx)
}

// Apply has the change approved, where that is asked for, and carries it out.
func (r *Rollout) Apply(ctx context.Context) error {
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
	soft, hard, stop := r.Terminal.Interruptible(ctx, r.interrupted, leavingAtOnce(r.verb()))
	defer stop()
	return r.CarryOut(soft, hard, shown)
}

// CarryOut does the work of apply: takes the lease, acts, and gives it back. It
// begins nothing once soft has ended, and waits for nothing once hard has.
func (r *Rollout) CarryOut(soft, hard context.Context, shown *plan.Plan) error {
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
	_, r.watched = r.Loaded.Stack.WatchLease(soft)
	// The first Ctrl-C ends the wait for the lease, but not the lease: that is
	// held until what is under way has ended. When it is lost everything ends.
	waiting, acquired := tied(hard, soft)
	lease, err := r.Loaded.Stack.Acquire(waiting, doc, r.Options.LeaseTimeout)
	if err != nil {
		return terminal.Interrupted(soft, err)
	}
	defer r.release(lease)
	acquired()
	soft, _ = tied(lease.Context(), soft)
	runErr := r.underLease(soft, lease, shown)
	if lost := r.lost(lease); lost != nil {
		return fmt.Errorf("stopped: %w; what is under way is left to the present leader", lost)
	}
	if runErr != nil && hard.Err() != nil && !errors.Is(runErr, terminal.ErrReported) {
		// What was cut off says nothing beyond that.
		return &terminal.Exit{Code: terminal.ExitInterrupted, Msg: "interrupted; what was under way was not waited for"}
	}
	return runErr
}

// tied is a child of ctx that ends with other, too, until it is untied.
func tied(ctx, other context.Context) (child context.Context, untie func() bool) {
	child, end := context.WithCancelCause(ctx)
	return child, context.AfterFunc(other, func() { end(context.Cause(other)) })
}

// lost says why the lease was lost and to whom, nil if it was not.
func (r *Rollout) lost(lease *store.Held) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return lease.Lost(ctx)
}

// verb is the command that carries this change out.
func (r *Rollout) verb() string {
	switch {
	case r.Destroying:
		return "destroy"
	case r.Stopping:
		return "stop"
	}
	return "apply"
}

// release ends the lease even when the run was interrupted.
func (r *Rollout) release(lease *store.Held) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := lease.Release(ctx); err != nil && !errors.Is(err, store.ErrLeaseLost) {
		r.Terminal.Warn(fmt.Sprintf("the lease could not be released and lapses by itself in a few seconds: %v", err))
	}
}

// underLease does the work of apply while the lease is held: it prepares the
// stepper, proposes a plan, has it confirmed and accepted, and steps until it is
// carried out.
func (r *Rollout) underLease(soft context.Context, lease *store.Held, shown *plan.Plan) error {
	hard := lease.Context()
	all, err := r.unlock(soft, lease)
	if err != nil {
		return err
	}
	r.progress = progress.New(r.Terminal)
	defer r.progress.Close()
	stepper, err := r.prepare(soft, lease, all)
	if err != nil {
		return err
	}
	r.Executor = stepper
	accepted, p, err := r.propose(soft, stepper)
	if err != nil {
		return err
	}
	if err := r.confirm(p, shown); err != nil {
		return err
	}
	if err := r.accept(soft, accepted, p); err != nil {
		return err
	}
	err = r.finish(hard, r.loop(soft, hard), p)
	r.pruneKeys(hard, lease)
	return err
}

// pruneKeys removes keys and authorities that have expired, as a controller does:
// where none runs they would stay for good. What is left over counts for nothing, and
// the next apply removes it, so that an error is none of the user's concern.
func (r *Rollout) pruneKeys(ctx context.Context, lease *store.Held) {
	ctx, cancel := context.WithTimeout(ctx, prunePatience)
	defer cancel()
	_ = clusterkeys.PruneExpired(ctx, r.Loaded.Stack.Store, time.Now(), lease.Epoch())
}

// prunePatience bounds what an apply does for tidiness alone.
const prunePatience = 5 * time.Second

// ShipAgent puts the program into the store that hosts of a cloud start with.
func (r *Rollout) ShipAgent(ctx context.Context, accepted *state.Document) error {
	isCloud := func(p schema.Provider) bool { return p.Name == schema.ProviderGCP }
	if !slices.ContainsFunc(accepted.Desired.Providers, isCloud) || len(accepted.Desired.Jobs)+len(accepted.Desired.Reservations) == 0 {
		return nil
	}
	hosts := r.Loaded.Stack.Bootstrap(ctx)
	if r.progress != nil { // a watch that follows a configuration has none
		hosts.Tell = r.progress.Upload
	}
	if _, err := hosts.Ship(); err != nil {
		return terminal.Interrupted(ctx, err)
	}
	return nil
}

// narrowing keeps to the targets; nil if there are none.
func (r *Rollout) narrowing() func(schema.Desired) schema.Desired {
	if len(r.Change.Targets) == 0 {
		return nil
	}
	return func(d schema.Desired) schema.Desired { return r.Change.Narrow(r.Executor.Document(), d) }
}

// confirm shows the plan that was not shown yet, and refuses to carry out
// another one than was approved.
func (r *Rollout) confirm(p, shown *plan.Plan) error {
	if r.Stopping {
		return nil
	}
	switch {
	case shown != nil:
	case r.Destroying && p.Empty():
		return nil // the summary says so
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

// Why a loop ends before everything is settled.
var (
	errTimeout = errors.New("timeout")
	errBlocked = errors.New("what is left waits for jobs that have ended")
)
