package stack

import (
	"context"
	"errors"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/journal"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
)

// Present returns the state and its position; nil where it is lost or damaged.
func (s *Stack) Present(ctx context.Context) (*state.Document, journal.Position, error) {
	doc, at, err := journal.Load(ctx, s.Store)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, journal.Position{}, nil
	case errors.Is(err, state.ErrDamaged),
		errors.Is(err, keyring.ErrDamaged) && at.Generation != store.Absent: // the object itself, not the key
		return nil, journal.Position{Generation: at.Generation}, nil
	}
	return doc, at, err
}
