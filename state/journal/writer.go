package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// ErrMoved is the error after another client wrote the state: this process no
// longer acts for the stack.
var ErrMoved = errors.New("another client has written the state")

// EncodeError is why a document cannot be written at all.
type EncodeError struct{ Err error }

func (e *EncodeError) Error() string { return "encode state: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *EncodeError) Unwrap() error { return e.Err }

// Stamp is what a document is written under.
type Stamp struct {
	Version string       // of fray
	Epoch   uint64       // of the lease
	Valid   func() error // whether the lease still holds; asked before a snapshot is written in the background
}

// slotsOfJournal is how many objects the entries of a new journal are written to.
const slotsOfJournal = 64

// Writer saves states one after another. One goroutine may use it.
type Writer struct {
	store store.Store
	stamp Stamp

	at       Position
	base     *state.Baseline             // the state at, where it has a journal
	slots    map[string]store.Generation // of the journal
	doubtful []attempt                   // writes since at of which it is not known whether they happened
	pending  *compaction                 // under way, nil: none is
	retryAt  uint64                      // number of the entry after which a snapshot that failed is tried again
}

// attempt is a write.
type attempt struct {
	doc   *state.Document // as it was stamped
	slots map[string]store.Generation
}

// Open reads the state to write its successors. Errors are those of [Load], after which
// the writer can only replace the state.
func Open(ctx context.Context, s store.Store, stamp Stamp) (*Writer, *state.Document, error) {
	doc, at, slots, err := load(ctx, s, true)
	w := &Writer{store: s, stamp: stamp, at: at, slots: slots}
	if err == nil && at.journal != nil {
		w.base = state.NewBaseline(doc)
		doc, err = resealed(ctx, s, doc, at)
	}
	return w, doc, err
}

// Journaled reports whether the next save writes an entry: another object than the last one.
func (w *Writer) Journaled() bool { return w.at.journal != nil }

// Position is the state that was read or written last.
func (w *Writer) Position() Position { return w.at }

// Save writes the next state. A conflict is settled by the nonce in the content: a write
// whose reply was lost has won after all.
func (w *Writer) Save(ctx context.Context, doc *state.Document) error {
	w.collect()
	w.end(ctx)
	out := w.stamped(doc)
	if w.at.journal == nil || w.at.ended {
		return w.saveWhole(ctx, out)
	}
	if err := w.append(ctx, out); err != nil {
		return err
	}
	if w.at.journal != nil && w.pending == nil && w.isCompactionDue(doc) {
		w.compact(ctx, out)
	}
	return nil
}

// Expect has it known in which jobs and slices a document differs from what was saved last, where
// edits have all of them.
func (w *Writer) Expect(doc *state.Document, edits *state.Edits) {
	if w.base != nil {
		w.base.Expect(doc, edits)
	}
}

// JobChanges are what Save would write of jobs; nil where it would write all of them.
func (w *Writer) JobChanges(doc *state.Document) *state.JobChanges {
	if w.base == nil {
		return nil
	}
	return w.base.JobChanges(doc)
}

// stamped is a document as it is written next.
func (w *Writer) stamped(doc *state.Document) *state.Document {
	out := *doc
	out.FormatVersion, out.FrayVersion = state.FormatVersion, w.stamp.Version
	out.Serial, out.Epoch, out.Nonce = max(w.at.Serial, doc.Serial)+1, w.stamp.Epoch, rand.Text()
	out.Journal = nil
	return &out
}

// Replace writes a state in place of one that cannot be read, of that generation, or
// is lost. It is not known what of that one's journal other clients would go on with:
// first all of that is overwritten.
func (w *Writer) Replace(ctx context.Context, doc *state.Document, generation store.Generation) error {
	out := w.stamped(doc)
	if err := w.endJournal(ctx, out, generation); err != nil {
		return err
	}
	w.at = Position{Generation: generation, Serial: out.Serial - 1}
	w.base, w.doubtful = nil, nil
	return w.saveWhole(ctx, out)
}

// endJournal has every client that would write the next entry of a journal find another one
// there. Where there are no entries that is the first one.
func (w *Writer) endJournal(ctx context.Context, out *state.Document, generation store.Generation) error {
	found, err := listSlots(ctx, w.store)
	if err != nil {
		return err
	}
	delete(found, store.StateKey)
	slots := slotsOfJournal
	switch {
	case len(found) == 0 && generation == store.Absent: // a new place
		return nil
	case len(found) == 0:
		slots = 1
	}
	e := state.Entry{FrayVersion: out.FrayVersion, Journal: out.Nonce, Lineage: out.Lineage, Serial: out.Serial, Epoch: out.Epoch, Nonce: out.Nonce}
	if w.base != nil { // until it is replaced the snapshot is the state
		e.Serial = 0
	}
	data, err := state.EncodeEntry(&e)
	if err != nil {
		return &EncodeError{err}
	}
	for slot := range slots {
		if err := w.stamp.Valid(); err != nil {
			return err
		}
		if _, err := w.store.Put(ctx, store.JournalKey(slot), data, store.Any); err != nil {
			return fmt.Errorf("end the journal of a state that cannot be read: %w", err)
		}
	}
	return nil
}

// documentStore is a store within this process that keeps a document as it is, and
// encodes it when a reader needs it.
type documentStore interface {
	PutDocument(ctx context.Context, doc *state.Document, want store.Generation) (store.Generation, error)
}

// saveWhole writes a document as one object, which becomes the snapshot of a journal if it
// is large.
func (w *Writer) saveWhole(ctx context.Context, out *state.Document) error {
	if keeper, keeps := w.store.(documentStore); keeps {
		generation, err := keeper.PutDocument(ctx, out, w.at.Generation)
		if err == nil {
			w.wrote(attempt{doc: out}, generation, 0)
			return nil
		}
		w.doubtful = append(w.doubtful, attempt{doc: out})
		_, err = w.settleWhole(ctx, out, err)
		return err
	}
	data, err := encodeWhole(out)
	if err != nil {
		return &EncodeError{err}
	}
	a := attempt{doc: out}
	if out.Journal != nil {
		// What is listed now is no entry of the journal that begins.
		if a.slots, err = listSlots(ctx, w.store); err != nil {
			return err
		}
	}
	return w.putWhole(ctx, a, data)
}

// encodeWhole gives a large document a journal.
func encodeWhole(out *state.Document) ([]byte, error) {
	if elements(out) <= manyElements { // a large one is not to be encoded twice
		if data, err := state.Encode(*out); err != nil || !state.IsCompressed(data) {
			return data, err
		}
	}
	out.Journal = &state.Journal{ID: out.Nonce, Slots: slotsOfJournal, WholeBelow: wholeBelow}
	if data, err := state.Encode(*out); err != nil || state.IsCompressed(data) {
		return data, err
	}
	out.Journal = nil
	return state.Encode(*out)
}

// putWhole writes a document as one object.
func (w *Writer) putWhole(ctx context.Context, a attempt, data []byte) error {
	for {
		generation, err := w.store.Put(ctx, store.StateKey, data, w.at.Generation)
		if err == nil {
			w.wrote(a, generation, len(data))
			return nil
		}
		w.doubtful = append(w.doubtful, a)
		again, err := w.settleWhole(ctx, a.doc, err)
		if !again {
			return err
		}
	}
}

// wrote takes in that a whole document was written.
func (w *Writer) wrote(a attempt, generation store.Generation, size int) {
	w.at = Position{Generation: generation, Serial: a.doc.Serial, Nonce: a.doc.Nonce, journal: a.doc.Journal, revision: a.doc.Revision, size: size}
	w.base, w.doubtful = nil, nil
	if w.at.journal != nil {
		w.at.nonces = map[uint64]string{0: a.doc.Nonce}
		w.slots, w.base = a.slots, state.NewBaseline(a.doc)
	}
}

// settleWhole looks what is there after a write that failed. One of our own that is
// not the last is built upon by the next save. It reports whether the write is worth another try.
func (w *Writer) settleWhole(ctx context.Context, out *state.Document, cause error) (again bool, err error) {
	failed := fmt.Errorf("save state: %w", cause)
	object, err := w.store.Get(ctx, store.StateKey)
	if err != nil {
		return false, failed
	}
	found, err := state.Decode(object.Data)
	if err != nil {
		return false, failed
	}
	if w.hasEnded(&found) && (found.Nonce != out.Nonce || found.Journal != nil) {
		again = errors.Is(cause, store.ErrConflict) && object.Generation != w.at.Generation
		w.at.Generation = object.Generation
		return again, failed
	}
	for _, a := range w.doubtful {
		if a.doc.Nonce != found.Nonce {
			continue
		}
		w.wrote(a, object.Generation, len(object.Data))
		if a.doc == out {
			return false, nil
		}
		return false, failed
	}
	if errors.Is(cause, store.ErrConflict) {
		return false, fmt.Errorf("save state: %w", ErrMoved)
	}
	return false, failed
}

// append writes the changes as the next entry.
func (w *Writer) append(ctx context.Context, out *state.Document) error {
	if err := w.makeRoom(ctx); err != nil {
		return err
	}
	changes, err := w.base.Changes(out)
	if err != nil {
		return &EncodeError{err}
	}
	number := w.at.number + 1
	data, err := state.EncodeEntry(&state.Entry{
		FrayVersion: out.FrayVersion, Journal: w.at.journal.ID, Number: number, Lineage: out.Lineage, After: w.at.Nonce,
		Serial: out.Serial, Epoch: out.Epoch, Nonce: out.Nonce, Changes: changes,
	})
	if err != nil {
		return &EncodeError{err}
	}
	key := store.JournalKey(w.at.journal.Slot(number))
	generation, err := w.store.Put(ctx, key, data, w.slots[key])
	if err != nil {
		w.doubtful = append(w.doubtful, attempt{doc: out})
		return w.settle(ctx, key, out, err)
	}
	w.appended(out, key, generation, len(data))
	return nil
}

// appended takes in that an entry was written.
func (w *Writer) appended(out *state.Document, key string, generation store.Generation, size int) {
	w.slots[key] = generation
	w.at.number++
	w.at.nonces[w.at.number] = out.Nonce
	w.at.Serial, w.at.Nonce, w.at.tail = out.Serial, out.Nonce, w.at.tail+size
	w.base.Advance(out)
	w.doubtful = nil
}

// settle is settleWhole for an entry.
func (w *Writer) settle(ctx context.Context, key string, out *state.Document, cause error) error {
	object, err := w.store.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) && errors.Is(cause, store.ErrConflict) {
		return fmt.Errorf("save state: %w", ErrMoved)
	}
	if err != nil {
		return fmt.Errorf("save state: %w", cause)
	}
	found, err := state.DecodeEntry(object.Data)
	if err == nil {
		for _, a := range w.doubtful {
			if a.doc.Nonce != found.Nonce {
				continue
			}
			w.appended(a.doc, key, object.Generation, len(object.Data))
			if a.doc == out {
				return nil
			}
			return fmt.Errorf("save state: %w", cause)
		}
		if found.Last && found.Journal == w.at.journal.ID && found.Number == w.at.number+1 && found.Nonce == w.at.Nonce {
			w.ended(key, object.Generation)
			return w.saveWhole(ctx, out)
		}
		if errors.Is(cause, store.ErrConflict) {
			return fmt.Errorf("save state: %w", ErrMoved)
		}
	}
	return fmt.Errorf("save state: %w", cause)
}
