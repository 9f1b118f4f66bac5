package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// compaction is a snapshot that is being written.
type compaction struct {
	done   chan struct{} // closed at its end
	result snapshotted
	err    error
}

// snapshotted is a snapshot that was written.
type snapshotted struct {
	generation store.Generation
	entries    uint64 // that it contains
	revision   uint64
	size       int
	small      bool // it needs no journal
}

// compactionTimeout bounds how long a snapshot is written in the background.
const compactionTimeout = 2 * time.Minute

// leastTail is how many bytes of entries cause no snapshot, however small that is.
const leastTail = 256 << 10

// isCompactionDue reports whether a snapshot is to be written: for its readers, before all
// slots are taken, and for the history of the state, which has its revisions.
func (w *Writer) isCompactionDue(doc *state.Document) bool {
	since := w.at.number - w.at.journal.Entries
	return w.at.number >= w.retryAt &&
		(since >= uint64(w.at.journal.Slots+1)/2 || w.at.tail > max(leastTail, w.at.size/2) || doc.Revision != w.at.revision)
}

// compact begins to write a snapshot of the state that was saved last.
func (w *Writer) compact(ctx context.Context, saved *state.Document) {
	c := &compaction{done: make(chan struct{})}
	w.pending = c
	out := *saved
	j := *w.at.journal
	j.Entries = w.at.number
	out.Journal = &j
	s, want, valid, nonces := w.store, w.at.Generation, w.stamp.Valid, maps.Clone(w.at.nonces)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), compactionTimeout)
	go func() {
		defer close(c.done)
		defer cancel()
		c.result, c.err = writeSnapshot(ctx, s, &out, want, valid, nonces)
	}()
}

// writeSnapshot writes a snapshot in place of that of generation want. If the reply is lost, or
// another client was faster, the one that is there will do if it is of one of the states that
// the writer knows by their nonces.
func writeSnapshot(ctx context.Context, s store.Store, out *state.Document, want store.Generation, valid func() error, nonces map[uint64]string) (snapshotted, error) {
	data, err := state.Encode(*out)
	if err != nil {
		return snapshotted{}, &EncodeError{err}
	}
	if err := valid(); err != nil {
		return snapshotted{}, err
	}
	generation, err := s.Put(ctx, store.StateKey, data, want)
	if err == nil {
		return snapshotOf(out, generation, data), nil
	}
	object, getErr := s.Get(ctx, store.StateKey)
	if getErr != nil {
		return snapshotted{}, fmt.Errorf("write a snapshot of the state: %w", err)
	}
	found, decodeErr := state.Decode(object.Data)
	if j := found.Journal; decodeErr == nil && j != nil && j.ID == out.Journal.ID && nonces[j.Entries] == found.Nonce && object.Generation != want {
		return snapshotOf(&found, object.Generation, object.Data), nil
	}
	if errors.Is(err, store.ErrConflict) {
		err = ErrMoved
	}
	return snapshotted{}, fmt.Errorf("write a snapshot of the state: %w", err)
}

func snapshotOf(doc *state.Document, generation store.Generation, data []byte) snapshotted {
	return snapshotted{generation: generation, entries: doc.Journal.Entries, revision: doc.Revision, size: len(data), small: isSmall(data, doc.Journal)}
}

// collect takes in the outcome of a snapshot that is written by now.
func (w *Writer) collect() {
	if w.pending == nil {
		return
	}
	select {
	case <-w.pending.done:
		_ = w.finish() // it is tried again, and again before the slots are all taken
	default:
	}
}

// finish takes in the outcome of a snapshot.
func (w *Writer) finish() error {
	c := w.pending
	w.pending = nil
	if c.err != nil {
		w.retryAt = w.at.number + uint64(w.at.journal.Slots+7)/8
		return c.err
	}
	j := *w.at.journal
	j.Entries = c.result.entries
	w.at.journal, w.at.Generation, w.at.revision = &j, c.result.generation, c.result.revision
	w.at.size, w.at.small, w.at.tail = c.result.size, c.result.small, 0
	maps.DeleteFunc(w.at.nonces, func(number uint64, _ string) bool { return number < j.Entries })
	return nil
}

// await waits for a snapshot that is being written.
func (w *Writer) await(ctx context.Context) error {
	if w.pending == nil {
		return nil
	}
	select {
	case <-w.pending.done:
		return w.finish()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// makeRoom has the entry contained in a snapshot whose place the next one takes.
func (w *Writer) makeRoom(ctx context.Context) error {
	for tries := 0; w.at.number+1-w.at.journal.Entries > uint64(w.at.journal.Slots); tries++ {
		if w.pending == nil {
			if tries > 1 {
				return errors.New("save state: its journal is full") // finish would have failed
			}
			w.compact(ctx, w.base.Document())
		}
		if err := w.await(ctx); err != nil && tries > 0 {
			return fmt.Errorf("save state: %w", err)
		}
	}
	return nil
}

// Flush waits for a snapshot that is being written, and writes one where the history of
// the state is to have its present revision, or where the state may be small by now.
func (w *Writer) Flush(ctx context.Context) error {
	if err := w.await(ctx); err != nil || w.at.journal == nil {
		return err
	}
	if doc := w.base.Document(); w.at.revision != doc.Revision || w.at.small || w.at.journal.WholeBelow > 0 && elements(doc) <= fewElements {
		return w.Compact(ctx)
	}
	return nil
}

// Compact writes a snapshot of a state with a journal, unless there are no entries since. If it
// is small it is one object afterwards.
func (w *Writer) Compact(ctx context.Context) error {
	if err := w.await(ctx); err != nil || w.at.journal == nil {
		return err
	}
	if !w.at.ended && w.at.number > w.at.journal.Entries {
		w.compact(ctx, w.base.Document())
		if err := w.await(ctx); err != nil {
			return err
		}
	}
	if w.end(ctx); !w.at.ended {
		return nil
	}
	return w.unite(ctx)
}

// Consolidate writes a snapshot and overwrites all entries that it contains: nothing of
// what was written before is left, but in what the store keeps of old versions.
func (w *Writer) Consolidate(ctx context.Context) error {
	if err := w.Compact(ctx); err != nil {
		return err
	}
	if w.at.journal == nil { // there may be entries of a journal that has ended
		var err error
		if w.slots, err = listSlots(ctx, w.store); err != nil {
			return err
		}
	}
	// It is of no journal: a reader that has an older snapshot looks for the newer one.
	data, err := state.EncodeEntry(&state.Entry{FrayVersion: w.stamp.Version, Epoch: w.stamp.Epoch})
	if err != nil {
		return &EncodeError{err}
	}
	for _, key := range slices.Sorted(maps.Keys(w.slots)) {
		if !strings.HasPrefix(key, store.JournalPrefix) {
			continue
		}
		if err := w.stamp.Valid(); err != nil {
			return err
		}
		generation, err := w.store.Put(ctx, key, data, w.slots[key])
		if err != nil {
			return fmt.Errorf("overwrite %s of the state's journal: %w", key, err)
		}
		w.slots[key] = generation
	}
	return nil
}
