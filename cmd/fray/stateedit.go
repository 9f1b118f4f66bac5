package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

func stateMoveCommand(a *app) *cobra.Command {
	var flags editFlags
	cmd := &cobra.Command{
		Use:   "mv FROM TO",
		Short: "Give what runs at one address another one",
		Long: `Give what is recorded under one address another one, so that a renamed job is
not ended and started again: an instance (job.a[0]), a whole job or service with
all its instances, a job group, a reservation, a namespace or a module. Rename it
in the files too; fray plan then shows no change. A moved block in the files does
the same, and for everybody who applies them.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := schema.ParseAddress(args[0])
			if err != nil {
				return fmt.Errorf("fray state mv: %w", err)
			}
			to, err := schema.ParseAddress(args[1])
			if err != nil {
				return fmt.Errorf("fray state mv: %w", err)
			}
			l, err := a.locateState(cmd.Context(), &flags.stateFlags)
			if err != nil {
				return err
			}
			if err := a.edit(cmd.Context(), l.stack, flags.leaseTimeout, func(doc *state.Document) (*state.Document, error) {
				return amend.Move(doc, from, to)
			}); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "%s is %s now. Name it so in the files too; fray plan shows what is left to do.\n", from, to)
			return nil
		},
	}
	flags.register(cmd)
	return cmd
}

func stateRemoveCommand(a *app) *cobra.Command {
	var flags editFlags
	cmd := &cobra.Command{
		Use:   "rm ADDR...",
		Short: "Forget addresses without destroying anything",
		Long: `Forget addresses without destroying anything: what runs keeps running, and no
plan touches its slices any more, which fray status lists as disowned. What is
still declared is made anew by the next apply. fray state import takes slices up
again. To end what runs, use fray destroy --target or fray stop instead.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.locateState(cmd.Context(), &flags.stateFlags)
			if err != nil {
				return err
			}
			addrs, err := l.addresses("state rm", args)
			if err != nil {
				return err
			}
			var removed amend.Removed
			if err := a.edit(cmd.Context(), l.stack, flags.leaseTimeout, func(doc *state.Document) (next *state.Document, err error) {
				next, removed, err = amend.Remove(doc, addrs, time.Now().UTC(), userAtHost())
				return next, err
			}); err != nil {
				return err
			}
			for _, addr := range append(removed.Jobs, removed.Resources...) {
				fmt.Fprintf(a.stdout, "Forgot %s.\n", addr)
			}
			if n := len(removed.Slices); n > 0 {
				fmt.Fprintf(a.stdout, "%d slices run on and are disowned: %s.\n", n, strings.Join(removed.Slices, ", "))
			}
			return nil
		},
	}
	flags.register(cmd)
	return cmd
}

// userAtHost is this user, for the record.
func userAtHost() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// importCommand is fray state import, where people look for it first.
func importCommand(a *app) *cobra.Command { return stateImportCommand(a) }

func stateImportCommand(a *app) *cobra.Command {
	var flags editFlags
	cmd := &cobra.Command{
		Use:   "import ADDR ID...",
		Short: "Take existing slices up as a declared job's or reservation's",
		Long: `Take slices that exist up as those of a declared job instance, service replica
or reservation that has none: disowned ones, or ones that carry this stack's mark
and that nothing uses. They must have the declared shape. An attempt that runs on
them is taken over with its number and budgets, and goes on.

What fray did not make is named by its id at its provider, and keeps its name:

  projects/P/locations/ZONE/nodes/NAME             a TPU node; also ZONE/NAME
  projects/P/locations/ZONE/queuedResources/NAME   a queued resource with its node
  projects/P/zones/ZONE/instances/NAME             a machine of Compute Engine

It is marked with this stack's labels and metadata and gets fray's startup script,
which starts the agent at its next boot, or when it is run as the command says.`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			addr, err := schema.ParseAddress(args[0])
			if err != nil {
				return fmt.Errorf("fray import: %w", err)
			}
			l, err := a.load(ctx, []string{flags.dir}, flags.config, false)
			if err != nil {
				return err
			}
			if l.stack.fresh {
				return fmt.Errorf("there is no state in %s: nothing was applied there yet", l.stack.at)
			}
			if err := l.stack.here(l.doc); err != nil {
				return err
			}
			in, names, err := taker{l, l.doc.Stack()}.takeIn(ctx, addr, args[1:])
			if err != nil {
				return err
			}
			if err := a.underLease(ctx, l.stack, store.LeaseConfig{Wait: flags.leaseTimeout}, func(ctx context.Context, w apply.Rewriter) error {
				return l.takeUp(ctx, w, upTake{addr: addr, in: in, slices: names}, a.stderr)
			}); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "%s has %s. fray plan shows what is left to do.\n", addr, strings.Join(names, ", "))
			return nil
		},
	}
	flags.register(cmd)
	return cmd
}

// observe looks at the world once.
func (l *loaded) observe(ctx context.Context, mark string) (*plan.Observed, error) {
	all, err := l.stack.providers(ctx, l.desired.Providers, l.doc)
	if err != nil {
		return nil, err
	}
	observer := &apply.Observer{Store: l.stack.store, Providers: all}
	return observer.Observe(ctx, mark)
}
