package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/state/store"
)

func stateMovedCommand(a *app) *cobra.Command {
	var flags stateFlags
	var force bool
	cmd := &cobra.Command{
		Use:   "moved",
		Short: "Confirm that a state's directory was moved here",
		Long: `Confirm that the directory in which the state is kept was moved here. fray uses a
directory only where it was made, since a copy of it names the tasks of the
original, and would end them. A directory that was renamed is known again by
itself; one that came from another file system, a backup or another machine is
not. While the original is still there nothing is confirmed. --force is for one
that was made on another machine: nothing of it must run there any more.

What ran on slices of provider local ended with the move, and is started again by
the next fray apply.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.openForRepair(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			return a.confirmMove(cmd.Context(), s, force)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "also from another machine, where nothing of it runs any more")
	return cmd
}

func (a *app) confirmMove(ctx context.Context, s *stack, force bool) error {
	placed, ok := store.AsPlaced(s.store)
	if !ok {
		return fmt.Errorf("the state is kept in %s, which has one place only: nothing was moved", s.at)
	}
	made, standing, err := placed.Place()
	if err != nil {
		return err
	}
	if standing == store.PlaceElsewhere && !force {
		return store.CheckPlace(s.store)
	}
	if err := placed.Settle(ctx, true); err != nil {
		return err
	}
	if made.ID == "" || standing == store.PlaceHere {
		fmt.Fprintf(a.stdout, "The state in %s is where it was made; nothing was moved.\n", s.at)
		return nil
	}
	fmt.Fprintf(a.stdout, "The state is kept in %s now, and not in %s any more. fray plan shows what follows.\n", s.at, made.Path)
	return nil
}

// notePlace says that a state is not where it was made, for verbs that read it;
// those that change it are refused.
func (a *app) notePlace(s *stack) {
	placed, ok := store.AsPlaced(s.store)
	if !ok {
		return
	}
	made, standing, err := placed.Place()
	if err != nil {
		a.warn(err.Error())
		return
	}
	if err := store.CheckPlace(s.store); err != nil {
		if refused, ok := errors.AsType[*store.PlaceError](err); ok {
			a.warn(refused.Error())
		}
		return
	}
	if standing == store.PlaceMoved {
		a.warn(fmt.Sprintf("this state was moved here from %s: what ran there on slices of provider local ended with the move, and fray apply starts it again", made.Path))
	}
}
