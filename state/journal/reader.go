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

// Journaled reports whether a state was read that has a journal.
func (r *Reader) Journaled() bool { return r.doc != nil && r.at.journal != nil }

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

// Open is the package's Open at the cost of what has followed since the last Read. The reader
// is not to be used afterwards.
func (r *Reader) Open(ctx context.Context, stamp Stamp) (*Writer, *state.Document, error) {
	if !r.Journaled() {
		return Open(ctx, r.Store, stamp)
	}
	slots, err := listSlots(ctx, r.Store)
	if err != nil {
		return nil, nil, err
	}
	doc, at, err := readTail(ctx, r.Store, r.doc, r.at)
	// The snapshot may be another one by now, which is found out when the next one is written. It
	// must be before the slots are taken.
	if errors.Is(err, errLapped) || err == nil && at.number-at.journal.Entries > uint64(at.journal.Slots)/2 {
		return Open(ctx, r.Store, stamp)
	}
	if err != nil {
		return nil, nil, err
	}
	w := &Writer{store: r.Store, stamp: stamp, at: at, slots: slots, base: state.NewBaseline(doc)}
	doc, err = resealed(ctx, r.Store, doc, at)
	return w, doc, err
}
