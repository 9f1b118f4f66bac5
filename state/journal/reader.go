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

	doc *state.Document
	at  Position
}

// Read returns the state, and whether it is another one than at the last call. The document
// is not to be changed. Errors are those of [Load], after which the next call reads all.
func (r *Reader) Read(ctx context.Context) (doc *state.Document, changed bool, err error) {
	doc, at, err := r.read(ctx)
	if err != nil {
		r.doc = nil
		return nil, false, err
	}
	changed = r.doc == nil || at.Nonce != r.at.Nonce || at.Serial != r.at.Serial
	if changed {
		r.doc = doc
	}
	r.at = at
	return r.doc, changed, nil
}

func (r *Reader) read(ctx context.Context) (*state.Document, Position, error) {
	if r.doc == nil {
		return Load(ctx, r.Store)
	}
	if r.at.journal == nil {
		if err := checkSnapshot(ctx, r.Store, r.at, nil); err == nil {
			return r.doc, r.at, nil
		}
		return Load(ctx, r.Store)
	}
	doc, at, err := readTail(ctx, r.Store, r.doc, r.at)
	if errors.Is(err, errLapped) {
		return Load(ctx, r.Store)
	}
	return doc, at, err
}
