package journal

import (
	"context"
	"errors"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Reader reads the state again and again, each time only what has changed.
type Reader struct {
	Store store.Store

	doc   *state.Document // as it is stored
	shown *state.Document // as it was returned
	at    Position
}

// Read returns the state, and whether it is another one than at the last call. The document
// is not to be changed. Errors are those of [Load], after which the next call reads all.
func (r *Reader) Read(ctx context.Context) (doc *state.Document, changed bool, err error) {
	doc, at, err := r.read(ctx)
	if err == nil && doc != r.doc {
		r.shown, err = resealed(ctx, r.Store, doc, at)
	}
	if err != nil {
		r.doc = nil
		return nil, false, err
	}
	changed = doc != r.doc && (r.doc == nil || at.Nonce != r.at.Nonce || at.Serial != r.at.Serial)
	r.doc, r.at = doc, at
	return r.shown, changed, nil
}

func (r *Reader) read(ctx context.Context) (*state.Document, Position, error) {
	if r.doc != nil {
		doc, at, err := r.readOn(ctx)
		if !errors.Is(err, errLapped) {
			return doc, at, err
		}
	}
	doc, at, _, err := load(ctx, r.Store, false)
	return doc, at, err
}

// readOn reads what follows; errLapped if all is to be read.
func (r *Reader) readOn(ctx context.Context) (*state.Document, Position, error) {
	if r.at.journal == nil {
		return r.doc, r.at, checkSnapshot(ctx, r.Store, r.at, nil)
	}
	return readTail(ctx, r.Store, r.doc, r.at)
}
