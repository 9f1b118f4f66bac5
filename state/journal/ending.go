package journal

import (
	"context"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// A state that has become small goes back to one object in two steps. First its journal gets
// an entry that is its last: a client that would have gone on with the journal finds that, and
// who reads it writes the next state whole, on the condition that this takes the place of the
// snapshot. Then the state is written without its journal. A process that dies in between has
// changed nothing for readers, and the next one takes the second step.

// wholeBelow is the size in bytes below which a state needs no journal any more: half of that at
// which it gets one, so that it does not go to and fro.
const wholeBelow = 512 << 10

// isSmall reports whether a snapshot needs no journal.
func isSmall(data []byte, j *state.Journal) bool {
	return len(data) < j.WholeBelow && !state.IsCompressed(data)
}

// How many elements a state has that is encoded only to find out whether it is small, and one that
// is large, most likely.
const (
	fewElements  = 256
	manyElements = 2048
)

func elements(doc *state.Document) int {
	return len(doc.Jobs) + len(doc.Slices) + len(doc.Desired.Jobs) + len(doc.Past)
}

// end writes the last entry of the journal of a state that is small. If that fails the journal
// goes on; the next write of an entry finds out what has happened.
func (w *Writer) end(ctx context.Context) {
	j, number := w.at.journal, w.at.number+1
	if j == nil || w.at.ended || !w.at.small || w.pending != nil || number-j.Entries > uint64(j.Slots) {
		return
	}
	doc := w.base.Document()
	data, err := state.EncodeEntry(&state.Entry{
		FrayVersion: doc.FrayVersion, Journal: j.ID, Number: number, Lineage: doc.Lineage, After: doc.Nonce,
		Serial: doc.Serial, Epoch: doc.Epoch, Nonce: doc.Nonce, Last: true,
	})
	if err != nil || w.stamp.Valid() != nil {
		return
	}
	key := store.JournalKey(j.Slot(number))
	if generation, err := w.store.Put(ctx, key, data, w.slots[key]); err == nil {
		w.ended(key, generation)
	}
}

// ended takes in that the journal has its last entry.
func (w *Writer) ended(key string, generation store.Generation) {
	w.slots[key] = generation
	w.at.number++
	w.at.nonces[w.at.number] = w.at.Nonce
	w.at.ended, w.doubtful = true, nil
}

// hasEnded reports whether a document is the state whose journal has ended: a snapshot that
// another client wrote, or what unite writes.
func (w *Writer) hasEnded(found *state.Document) bool {
	switch {
	case !w.at.ended:
		return false
	case found.Journal == nil:
		return found.Nonce == w.at.Nonce
	default:
		return found.Journal.ID == w.at.journal.ID && w.at.nonces[found.Journal.Entries] == found.Nonce
	}
}

// unite writes the state whose journal has ended as one object, if it is still small.
func (w *Writer) unite(ctx context.Context) error {
	out := *w.base.Document()
	data, err := state.Encode(out)
	if err != nil {
		return &EncodeError{err}
	}
	if state.IsCompressed(data) {
		return nil // the next save begins another journal
	}
	if err := w.stamp.Valid(); err != nil {
		return err
	}
	return w.putWhole(ctx, attempt{doc: &out}, data)
}
