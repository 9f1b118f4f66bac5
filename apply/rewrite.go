package apply

import (
	"context"
	"fmt"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/journal"
	"github.com/fray-ml/fray/state/store"
)

// Rewriter replaces the state for changes that people make by hand, under a
// lease. It takes no step: what follows from the new state is for the next plan
// to show.
type Rewriter struct {
	Store   store.Store
	Version string // of fray
	Epoch   uint64
	Valid   func() error // whether the lease still holds
}

// Edit writes what edit makes of the state. edit is given the document as it
// stands under the lease and returns a new one, or the same for no change;
// after an error nothing is written.
func (r Rewriter) Edit(ctx context.Context, edit func(doc *state.Document) (*state.Document, error)) (*state.Document, error) {
	w, doc, err := openState(ctx, r.Store, r.stamp(), nil)
	if err != nil {
		return nil, err
	}
	next, err := edit(doc)
	if err != nil || next == doc {
		return doc, err
	}
	return next, r.save(ctx, w, next)
}

// Replace writes doc in place of the state that was read at a position, or that is lost or
// cannot be read there. Its serial is at least one above doc's.
func (r Rewriter) Replace(ctx context.Context, doc *state.Document, at journal.Position) error {
	w, was, err := journal.Open(ctx, r.Store, r.stamp())
	switch {
	case at.Nonce == "": // it cannot be read
		if err := r.record(ctx, doc); err != nil {
			return err
		}
		return w.Replace(ctx, doc, at.Generation)
	case err != nil:
		return err
	case w.Position().Nonce != at.Nonce:
		return fmt.Errorf("save state: %w", ErrStateMoved)
	}
	// The state is whole without its journal then, and in its history.
	if err := w.Compact(ctx); err != nil {
		return err
	}
	if was.Lineage == doc.Lineage {
		return r.save(ctx, w, doc)
	}
	if err := r.record(ctx, doc); err != nil {
		return err
	}
	return w.Replace(ctx, doc, w.Position().Generation)
}

// Consolidate has nothing left in the store of how the state was written before: under
// another key, for one.
func (r Rewriter) Consolidate(ctx context.Context) error {
	w, _, err := journal.Open(ctx, r.Store, r.stamp())
	if err != nil {
		return err
	}
	return w.Consolidate(ctx)
}

func (r Rewriter) stamp() journal.Stamp {
	return journal.Stamp{Version: r.Version, Epoch: r.Epoch, Valid: r.Valid}
}

// record has what is recorded of jobs follow what people make of the state.
func (r Rewriter) record(ctx context.Context, doc *state.Document) error {
	if err := r.Valid(); err != nil {
		return err
	}
	return (&jobRecords{store: r.Store, epoch: r.Epoch, valid: r.Valid}).save(ctx, doc, nil)
}

func (r Rewriter) save(ctx context.Context, w *journal.Writer, doc *state.Document) error {
	if err := r.record(ctx, doc); err != nil {
		return err
	}
	if err := w.Save(ctx, doc); err != nil {
		return err
	}
	_ = w.Compact(ctx) // for the history of the state, which is saved
	return nil
}
