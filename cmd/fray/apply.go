package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/apply"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// applyFlags are the flags of apply and destroy.
type applyFlags struct {
	changeFlags
	autoApprove  bool
	parallelism  int
	timeout      time.Duration
	leaseTimeout time.Duration
	wait         string
}

// How far apply follows what it started.
const (
	waitReady    = "ready"
	waitComplete = "complete"
)

func (f *applyFlags) register(cmd *cobra.Command) {
	f.changeFlags.register(cmd)
	f.registerRun(cmd)
	cmd.Flags().StringVar(&f.wait, "wait", waitReady, "`UNTIL` everything is \"ready\" (running and healthy, or ended), or all jobs are \"complete\"")
}

func (f *applyFlags) registerRun(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.autoApprove, "auto-approve", "y", false, "do not ask")
	cmd.Flags().IntVar(&f.parallelism, "parallelism", 32, "at most `N` operations at once")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 10*time.Minute, "after this `TIME` leave what still waits as pending and exit with 3; 0 waits for ever")
	cmd.Flags().DurationVar(&f.leaseTimeout, "lease-timeout", 0, "how long to wait for somebody else who is changing the stack")
}

func (f *applyFlags) validate() error {
	if f.wait != waitReady && f.wait != waitComplete {
		return fmt.Errorf("--wait=%s: want %q or %q", f.wait, waitReady, waitComplete)
	}
	if f.parallelism < 1 {
		return fmt.Errorf("--parallelism=%d: want at least 1", f.parallelism)
	}
	if f.timeout < 0 || f.leaseTimeout < 0 {
		return errors.New("--timeout and --lease-timeout must not be negative")
	}
	return nil
}

func applyCommand(a *app) *cobra.Command {
	flags := applyFlags{wait: waitReady}
	cmd := &cobra.Command{
		Use:   "apply [DIR | FILE... | PLANFILE]",
		Short: "Make it so: create, change and start what the files ask for",
		Long: `Make it so. apply shows the plan, asks, and returns once everything declared is
running and healthy or has ended. What cannot be placed is named with its
reason; after --timeout it is left pending and apply exits with 3. With
--wait=complete it follows jobs to their end and exits with 1 if one failed.

Ctrl-C starts nothing new, saves and leaves; a second one leaves at once. Either
way the next apply picks up.

What waits for a job that failed or was stopped would wait for ever: apply names
it and exits with 1 as soon as nothing else is left. So does an apply that finds
nothing to do but a job that failed earlier: it stays failed until it changes or
--replace=ADDR starts it again. What programs launched is theirs: apply neither
waits for it nor fails with it, unless --target or --replace names it.

Slices of jobs that have ended are deleted whether the plan names them or not,
but for those of jobs that --target leaves out.

With --json standard output has two JSON documents: the plan (docs/plan-json.md),
and, however it ends, the result: "outcome" ("complete", "failed", "pending" or
"interrupted"), "actions" (counts by action), "jobs" (the status of each),
"pending" (a list of {"address", "reasons"}: what still waits), and "outputs"
(those that are not sensitive).`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.validate(); err != nil {
				return err
			}
			r := &runner{app: a, flags: &flags}
			flags.input = flags.input && !flags.json
			if flags.json && !flags.autoApprove && !isPlanFile(args) {
				return errors.New("--json leaves nobody to ask; use --auto-approve or a saved plan with it")
			}
			if isPlanFile(args) {
				return r.applySaved(cmd.Context(), args[0])
			}
			l, err := a.load(cmd.Context(), args, flags.configFlags, true)
			if err != nil {
				return err
			}
			r.l = l
			if r.c, err = l.change(a, &flags.changeFlags); err != nil {
				return err
			}
			return r.apply(cmd.Context())
		},
	}
	flags.register(cmd)
	return cmd
}

// runner carries one change out: approve, accept, step until settled.
type runner struct {
	app   *app
	flags *applyFlags
	l     *loaded
	c     *change

	stepper  carrier
	progress *progress
	scope    apply.Scope
	// chosen are the targets and what they depend on; nil: everything is meant.
	chosen func(schema.Address) bool
	// destroying changes the words, and that nothing may be left.
	destroying bool
	// stopping keeps the outputs and says nothing about the rest.
	stopping bool
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

func (r *runner) applySaved(ctx context.Context, path string) error {
	sp, err := readPlan(ctx, path)
	if err != nil {
		return err
	}
	if r.l, r.c, err = sp.open(ctx, r.app, path, r.flags.configFlags); err != nil {
		return err
	}
	r.flags.autoApprove = true // it was reviewed
	r.saved = func(doc *state.Document) error {
		return sp.check(path, doc, r.l.stack.store)
	}
	return r.apply(ctx)
}

func (r *runner) apply(ctx context.Context) error {
	var shown *plan.Plan
	if !r.flags.autoApprove {
		p, err := r.ask(ctx)
		if err != nil {
			return err
		}
		if r.unchanged(p) {
			return r.nothing(ctx)
		}
		shown = p
	}
	soft, hard, stop := r.app.interruptibleAs(ctx, r.interrupted, leavingAtOnce(r.verb()))
	defer stop()
	return r.carryOut(soft, hard, shown)
}

// carryOut does the work of apply: takes the lease, acts, and gives it back. It
// begins nothing once soft has ended, and waits for nothing once hard has.
func (r *runner) carryOut(soft, hard context.Context, shown *plan.Plan) error {
	doc, err := r.l.stack.load(soft)
	if err != nil {
		return untouched(soft, err)
	}
	if err := r.l.stack.here(doc); err != nil {
		return err
	}
	if done, err := r.throughController(soft, hard, shown); done || err != nil {
		return err
	}
	_, r.watched = r.l.stack.watch(soft)
	// The first Ctrl-C ends the wait for the lease, but not the lease: that is
	// held until what is under way has ended. When it is lost everything ends.
	waiting, acquired := tied(hard, soft)
	lease, err := r.l.stack.acquire(waiting, doc, r.flags.leaseTimeout)
	if err != nil {
		return untouched(soft, err)
	}
	defer r.release(lease)
	acquired()
	soft, _ = tied(lease.Context(), soft)
	runErr := r.underLease(soft, lease, shown)
	if lost := r.lost(lease); lost != nil {
		return fmt.Errorf("stopped: %w; what is under way is left to whoever leads now", lost)
	}
	if runErr != nil && hard.Err() != nil && !errors.Is(runErr, errReported) {
		// What was cut off says nothing beyond that.
		return &exit{code: exitInterrupted, msg: "interrupted; what was under way was not waited for"}
	}
	return runErr
}

// tied is a child of ctx that ends with other, too, until it is untied.
func tied(ctx, other context.Context) (child context.Context, untie func() bool) {
	child, end := context.WithCancelCause(ctx)
	return child, context.AfterFunc(other, func() { end(context.Cause(other)) })
}

// lost says why the lease was lost and to whom, nil if it was not.
func (r *runner) lost(lease *store.Held) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return lease.Lost(ctx)
}

// verb is the command that carries this change out.
func (r *runner) verb() string {
	switch {
	case r.destroying:
		return "destroy"
	case r.stopping:
		return "stop"
	}
	return "apply"
}

// release ends the lease even when the run was interrupted.
func (r *runner) release(lease *store.Held) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := lease.Release(ctx); err != nil && !errors.Is(err, store.ErrLeaseLost) {
		r.app.warn(fmt.Sprintf("the lease could not be released and lapses by itself in a few seconds: %v", err))
	}
}

// underLease does the work of apply while the lease is held: it prepares the
// stepper, proposes a plan, has it confirmed and accepted, and steps until it is
// carried out.
func (r *runner) underLease(soft context.Context, lease *store.Held, shown *plan.Plan) error {
	hard := lease.Context()
	all, err := r.unlock(soft, lease)
	if err != nil {
		return err
	}
	r.progress = newProgress(r.app)
	defer r.progress.close()
	stepper, err := r.prepare(soft, lease, all)
	if err != nil {
		return err
	}
	r.stepper = stepper
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
func (r *runner) pruneKeys(ctx context.Context, lease *store.Held) {
	ctx, cancel := context.WithTimeout(ctx, prunePatience)
	defer cancel()
	_ = clusterkeys.PruneExpired(ctx, r.l.stack.store, time.Now(), lease.Epoch())
}

// prunePatience bounds what an apply does for tidiness alone.
const prunePatience = 5 * time.Second

// shipAgent puts the program into the store that hosts of a cloud start with.
func (r *runner) shipAgent(ctx context.Context, accepted *state.Document) error {
	isCloud := func(p schema.Provider) bool { return p.Name == schema.ProviderGCP }
	if !slices.ContainsFunc(accepted.Desired.Providers, isCloud) || len(accepted.Desired.Jobs)+len(accepted.Desired.Reservations) == 0 {
		return nil
	}
	hosts := r.l.stack.bootstrap(ctx)
	hosts.tell = r.progress.upload
	if _, err := hosts.ship(); err != nil {
		return untouched(ctx, err)
	}
	return nil
}

// narrowing keeps to the targets; nil if there are none.
func (r *runner) narrowing() func(schema.Desired) schema.Desired {
	if len(r.c.targets) == 0 {
		return nil
	}
	return func(d schema.Desired) schema.Desired { return r.c.narrow(r.stepper.Document(), d) }
}

// confirm shows the plan that was not shown yet, and refuses to carry out
// another one than was approved.
func (r *runner) confirm(p, shown *plan.Plan) error {
	if r.stopping {
		return nil
	}
	switch {
	case shown != nil:
	case r.destroying && p.Empty():
		return nil // the summary says so
	default:
		if err := r.app.showPlan(r.l, p, r.flags.json, false); err != nil {
			return err
		}
		return r.app.refusals(r.l, p)
	}
	if !reflect.DeepEqual(p.Changes, shown.Changes) || !reflect.DeepEqual(p.Outputs, shown.Outputs) || sameAmendments(p.Amendments, shown.Amendments) != nil {
		return errors.New("the stack changed while you were deciding, and the plan with it; nothing was done: run fray " + r.verb() + " again")
	}
	return nil
}

// Why a loop ends before everything is settled.
var (
	errTimeout = errors.New("timeout")
	errBlocked = errors.New("what is left waits for jobs that have ended")
)
