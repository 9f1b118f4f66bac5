package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/rollout"
	"github.com/fray-ml/fray/savedplan"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/terminal"
)

func registerApply(f *rollout.Options, cmd *cobra.Command) {
	register.Change(&f.ChangeOptions, cmd)
	registerRun(f, cmd)
	cmd.Flags().StringVar(&f.Wait, "wait", rollout.WaitReady, "`UNTIL` everything is \"ready\" (running and healthy, or ended), or all jobs are \"complete\"")
}

func registerRun(f *rollout.Options, cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.AutoApprove, "auto-approve", "y", false, "do not ask")
	cmd.Flags().IntVar(&f.Parallelism, "parallelism", 32, "at most `N` operations at once")
	cmd.Flags().DurationVar(&f.Timeout, "timeout", 10*time.Minute, "after this `TIME` leave what still waits as pending and exit with 3; 0 waits for ever")
	cmd.Flags().DurationVar(&f.LeaseTimeout, "lease-timeout", 0, "how long to wait for another process that is changing the stack")
}

func applyCommand(a *terminal.Terminal) *cobra.Command {
	flags := rollout.Options{Wait: rollout.WaitReady}
	cmd := &cobra.Command{
		Use:   "apply [DIR | FILE... | PLANFILE]",
		Short: "Make it so: create, change and start what the files ask for",
		Long: `Make it so. apply shows the plan, asks, and returns once everything declared is
running and healthy or has ended. What cannot be placed is named with its
reason; after --timeout it is left pending and apply exits with 3. With
--wait=complete it follows jobs to their end and exits with 1 if one failed; if
the files have a controller block, it starts that once all is ready.

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
			return applyChange(cmd.Context(), a, args, &flags)
		},
	}
	registerApply(&flags, cmd)
	return cmd
}

// applyChange carries out what the flags ask for, or a saved plan.
func applyChange(ctx context.Context, a *terminal.Terminal, args []string, flags *rollout.Options) error {
	if err := flags.Validate(); err != nil {
		return err
	}
	r := &rollout.Rollout{Terminal: a, Options: flags}
	flags.Input, flags.Changes = flags.Input && !flags.JSON, true
	saved := savedplan.IsFile(args)
	switch {
	case saved && (flags.Destroy || flags.RefreshOnly):
		return fmt.Errorf("%s is a saved plan, which states itself what is done: to carry it out, fray apply %[1]s", terminal.ShellQuote(args[0]))
	case saved:
		return r.ApplySaved(ctx, args[0])
	case flags.JSON && !flags.AutoApprove:
		return errors.New("--json cannot ask for approval; add --auto-approve or apply a saved plan")
	}
	var err error
	if r.Loaded, r.Change, err = proposal.Read(ctx, a, args, &flags.ChangeOptions, true); err != nil {
		return err
	}
	if flags.Wait == rollout.WaitComplete && r.Loaded.Desired.Controller != nil && r.Change.Mode == plan.ModeApply {
		if r, err = readied(ctx, r, args); err != nil {
			return err
		}
	}
	return r.Apply(ctx)
}

// readied applies until all is ready, unless a controller leads already, and returns what follows it from there, with the
// controller leading: programs may need that in order to end, as actors need its registry.
func readied(ctx context.Context, r *rollout.Rollout, args []string) (*rollout.Rollout, error) {
	if _, serves := r.Loaded.Stack.Served(ctx); serves {
		return r, nil
	}
	first, rest := *r.Options, *r.Options
	first.Wait, r.Options, r.Leads = rollout.WaitReady, &first, true
	if err := r.Apply(ctx); err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for serves := false; !serves; _, serves = r.Loaded.Stack.Served(ctx) {
		if !sleep.For(within, 100*time.Millisecond) {
			return nil, fmt.Errorf("wait for the controller to lead: %w; its log is watch.log in %s", within.Err(), r.Loaded.Stack.Root)
		}
	}
	rest.AutoApprove, rest.Replace = true, nil
	follows := &rollout.Rollout{Terminal: r.Terminal, Options: &rest, Follows: r.Carried}
	var err error
	follows.Loaded, follows.Change, err = proposal.Read(ctx, r.Terminal, args, &rest.ChangeOptions, true)
	return follows, err
}
