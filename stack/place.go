package stack

import (
	"errors"
	"fmt"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// NotePlace warns that a state is not where it was made, for verbs that read it;
// those that change it are rejected.
func NotePlace(a *terminal.Terminal, s *Stack) {
	placed, ok := store.AsPlaced(s.Store)
	if !ok {
		return
	}
	made, standing, err := placed.Place()
	if err != nil {
		a.Warn(err.Error())
		return
	}
	if err := store.CheckPlace(s.Store); err != nil {
		if moved, ok := errors.AsType[*store.PlaceError](err); ok {
			a.Warn(moved.Error())
		}
		return
	}
	if standing == store.PlaceMoved {
		a.Warn(fmt.Sprintf("this state was moved here from %s: what ran there on slices of provider local ended with the move, and fray apply starts it again", made.Path))
	}
}
