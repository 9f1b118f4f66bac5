package stack

import (
	"errors"
	"fmt"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// NotePlace warns that a state is not where it was made. For a verb that changes it that is
// the error.
func NotePlace(a *terminal.Terminal, s *Stack, changes bool) error {
	placed, ok := store.AsPlaced(s.Store)
	if !ok {
		return nil
	}
	made, standing, err := placed.Place()
	if err != nil {
		a.Warn(err.Error())
		return nil
	}
	if err := store.CheckPlace(s.Store); err != nil {
		moved, ok := errors.AsType[*store.PlaceError](err)
		if ok && changes {
			return err
		}
		if ok {
			a.Warn(moved.Error())
		}
		return nil
	}
	if standing == store.PlaceMoved {
		a.Warn(fmt.Sprintf("this state was moved here from %s: what ran there on slices of provider local ended with the move, and fray apply starts it again", made.Path))
	}
	return nil
}
