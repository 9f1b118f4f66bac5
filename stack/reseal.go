package stack

import (
	"context"
	"errors"
	"fmt"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// FinishRekey seals anew what a rekey that died has left, and removes its former
// key. The next holder of the lease does so before anything else.
func (s *Stack) FinishRekey(ctx context.Context, w apply.Rewriter) error {
	rotating, err := s.Keys.rotating(ctx)
	if err != nil || !rotating {
		return err
	}
	if err := s.ResealState(ctx, w); err != nil {
		return fmt.Errorf("finish an interrupted fray state rekey: %w", err)
	}
	if err := s.ResealObjects(ctx, w); err != nil {
		return fmt.Errorf("finish an interrupted fray state rekey: %w", err)
	}
	return s.Keys.Settle(ctx)
}

// ResealState writes the state, and the configuration that it names, as sealed with
// the present key.
func (s *Stack) ResealState(ctx context.Context, w apply.Rewriter) error {
	if doc, _, err := s.Present(ctx); err != nil || doc == nil {
		return err
	}
	next, err := w.Edit(ctx, func(doc *state.Document) (*state.Document, error) {
		// The store has sealed it anew on its way here.
		next := doc.Clone()
		var err error
		next.Recorded, err = s.resealRecording(ctx, doc.Recorded)
		return next, err
	})
	if err != nil {
		return err
	}
	if err := w.Consolidate(ctx); err != nil {
		return err
	}
	return store.SweepConfigurations(ctx, s.Store, next.Recorded)
}

// resealRecording keeps a recorded configuration as sealed with the present key, and
// returns its new name. One that is lost or cannot be opened stays as it is.
func (s *Stack) resealRecording(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	object, err := s.Store.Get(ctx, store.ConfigurationKey(name))
	if errors.Is(err, store.ErrNotFound) {
		return name, nil
	}
	if err != nil {
		return "", err
	}
	key, err := s.Keys.key(ctx)
	if err != nil {
		return "", err
	}
	sealed, err := key.Reseal(string(object.Data))
	if errors.Is(err, state.ErrOtherKey) {
		return name, nil
	}
	if err != nil {
		return "", err
	}
	made := RecordingOf(sealed)
	if _, err := s.Store.Put(ctx, store.ConfigurationKey(made.Name), made.Data, store.Any); err != nil {
		return "", fmt.Errorf("record configuration: %w", err)
	}
	return made.Name, nil
}

// ResealObjects writes all assignments and the ledger of usage as sealed with the present key.
// An assignment that is damaged is for the leader to write anew.
func (s *Stack) ResealObjects(ctx context.Context, w apply.Rewriter) error {
	objects, err := s.Store.List(ctx, store.AssignPrefix, store.UsagePrefix)
	if err != nil {
		return fmt.Errorf("list what is assigned and used: %w", err)
	}
	for _, o := range objects {
		if err := w.Valid(); err != nil {
			return err
		}
		object, err := s.Store.Get(ctx, o.Key) // sealed anew on its way here
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err == nil {
			_, err = s.Store.Put(ctx, o.Key, object.Data, object.Generation)
		}
		if err != nil {
			return fmt.Errorf("seal %s anew: %w", o.Key, err)
		}
	}
	return nil
}
