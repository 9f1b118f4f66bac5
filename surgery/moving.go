package surgery

import (
	"context"
	"fmt"

	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// ConfirmMove records that the directory of a state was moved here.
func ConfirmMove(ctx context.Context, a *terminal.Terminal, s *stack.Stack, force bool) error {
	placed, ok := store.AsPlaced(s.Store)
	if !ok {
		return fmt.Errorf("the state is kept in %s, which has one place only: nothing was moved", s.At)
	}
	made, standing, err := placed.Place()
	if err != nil {
		return err
	}
	if standing == store.PlaceElsewhere && !force {
		return store.CheckPlace(s.Store)
	}
	if err := placed.Settle(ctx, true); err != nil {
		return err
	}
	if made.ID == "" || standing == store.PlaceHere {
		fmt.Fprintf(a.Stdout, "The state in %s is where it was made; nothing was moved.\n", s.At)
		return nil
	}
	fmt.Fprintf(a.Stdout, "The state is kept in %s now, and not in %s any more. fray plan shows what follows.\n", s.At, made.Path)
	return nil
}
