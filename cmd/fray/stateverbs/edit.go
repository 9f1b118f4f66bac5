package stateverbs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/surgery"
	"github.com/fray-ml/fray/terminal"
)

func moveCommand(a *terminal.Terminal) *cobra.Command {
	var flags surgery.EditOptions
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
			l, err := surgery.LocateState(cmd.Context(), a, &flags.Options)
			if err != nil {
				return err
			}
			if err := surgery.EditState(cmd.Context(), a, l.Stack, flags.LeaseTimeout, func(doc *state.Document) (*state.Document, error) {
				return amend.Move(doc, from, to)
			}); err != nil {
				return err
			}
			fmt.Fprintf(a.Stdout, "%s is %s now. Name it so in the files too; fray plan shows what is left to do.\n", from, to)
			return nil
		},
	}
	register.Edit(&flags, cmd)
	return cmd
}

func removeCommand(a *terminal.Terminal) *cobra.Command {
	var flags surgery.EditOptions
	cmd := &cobra.Command{
		Use:   "rm ADDR...",
		Short: "Forget addresses without destroying anything",
		Long: `Forget addresses without destroying anything: what runs keeps running, and no
plan touches its slices any more, which fray status lists as unmanaged. What is
still declared is made anew by the next apply. fray state import takes slices up
again. To end what runs, use fray destroy --target or fray stop instead.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := surgery.LocateState(cmd.Context(), a, &flags.Options)
			if err != nil {
				return err
			}
			addrs, err := l.Addresses("state rm", args)
			if err != nil {
				return err
			}
			var removed amend.Removed
			if err := surgery.EditState(cmd.Context(), a, l.Stack, flags.LeaseTimeout, func(doc *state.Document) (next *state.Document, err error) {
				next, removed, err = amend.Remove(doc, addrs, time.Now().UTC(), stack.UserAtHost())
				return next, err
			}); err != nil {
				return err
			}
			for _, addr := range append(removed.Jobs, removed.Resources...) {
				fmt.Fprintf(a.Stdout, "Forgot %s.\n", addr)
			}
			if n := len(removed.Slices); n > 0 {
				fmt.Fprintf(a.Stdout, "%d slices keep running, unmanaged: %s.\n", n, strings.Join(removed.Slices, ", "))
			}
			return nil
		},
	}
	register.Edit(&flags, cmd)
	return cmd
}

// ImportCommand is fray state import, where users expect it.
func ImportCommand(a *terminal.Terminal) *cobra.Command { return importCommand(a) }

func importCommand(a *terminal.Terminal) *cobra.Command {
	var flags surgery.EditOptions
	cmd := &cobra.Command{
		Use:   "import ADDR ID...",
		Short: "Take existing slices up as a declared job's or reservation's",
		Long: `Take slices that exist up as those of a declared job instance, service replica
or reservation that has none: unmanaged ones, or ones that carry this stack's mark
and that nothing uses. They must have the declared shape. An attempt that runs on
them is taken over with its number and budgets, and goes on.

What fray did not make is named by its id at its provider, and keeps its name:

  projects/P/locations/ZONE/nodes/NAME             a TPU node; also ZONE/NAME
  projects/P/locations/ZONE/queuedResources/NAME   a queued resource with its node
  projects/P/zones/ZONE/instances/NAME             a machine of Compute Engine

It is marked with this stack's labels and metadata and gets fray's startup script,
which starts the agent at its next boot, or when it is run as the command describes.`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			addr, err := schema.ParseAddress(args[0])
			if err != nil {
				return fmt.Errorf("fray import: %w", err)
			}
			l, err := configuration.Load(ctx, a, []string{flags.Dir}, flags.Configuration, false)
			if err != nil {
				return err
			}
			if l.Stack.Fresh {
				return fmt.Errorf("there is no state in %s: nothing was applied there yet", l.Stack.At)
			}
			if err := l.Stack.CheckHere(l.Document); err != nil {
				return err
			}
			in, names, err := proposal.Importer{Loaded: l, Mark: l.Document.Stack()}.FindAll(ctx, addr, args[1:])
			if err != nil {
				return err
			}
			if err := stack.UnderLease(ctx, a, l.Stack, store.LeaseConfig{Wait: flags.LeaseTimeout}, func(ctx context.Context, w apply.Rewriter) error {
				return proposal.CarryOut(ctx, l, w, proposal.Import{Addr: addr, In: in, Slices: names}, a.Stderr)
			}); err != nil {
				return err
			}
			fmt.Fprintf(a.Stdout, "%s has %s. fray plan shows what is left to do.\n", addr, strings.Join(names, ", "))
			return nil
		},
	}
	register.Edit(&flags, cmd)
	return cmd
}
