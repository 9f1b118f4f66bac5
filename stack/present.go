package stack

import (
	"context"
	"errors"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
)

// Present returns the state and its generation; nil where it is lost or damaged.
func (s *Stack) Present(ctx context.Context) (*state.Document, store.Generation, error) {
	object, err := s.Store.Get(ctx, store.StateKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil, store.Absent, nil
	}
	if errors.Is(err, keyring.ErrDamaged) && object.Generation != store.Absent { // the object itself, not the key
		return nil, object.Generation, nil
	}
	if err != nil {
		return nil, 0, err
	}
	doc, err := state.Decode(object.Data)
	if errors.Is(err, state.ErrDamaged) {
		return nil, object.Generation, nil
	}
	return &doc, object.Generation, err
}
