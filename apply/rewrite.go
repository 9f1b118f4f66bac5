package apply

import (
	"context"
	"time"

	"github.com/fray-ml/fray/state"
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
	doc, generation, err := LoadState(ctx, r.Store)
	if err != nil {
		return nil, err
	}
	next, err := edit(doc)
	if err != nil || next == doc {
		return doc, err
	}
	return next, r.write(ctx, next, generation, max(doc.Serial, next.Serial))
}

// Replace writes doc where the state of that generation is lost or cannot be
// read. Its serial is one above doc's.
func (r Rewriter) Replace(ctx context.Context, doc *state.Document, generation store.Generation) error {
	return r.write(ctx, doc, generation, doc.Serial)
}

func (r Rewriter) write(ctx context.Context, doc *state.Document, generation store.Generation, serial uint64) error {
	if err := r.Valid(); err != nil {
		return err
	}
	// What is recorded of jobs follows what people make of the state.
	if err := (&journal{store: r.Store, epoch: r.Epoch, valid: r.Valid}).save(ctx, doc); err != nil {
		return err
	}
	out := &saver{store: r.Store, generation: generation, serial: serial, version: r.Version, epoch: r.Epoch, now: time.Now}
	return out.save(ctx, doc)
}
