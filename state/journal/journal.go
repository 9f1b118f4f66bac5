// Package journal keeps the state in a store: a small one whole, as one object; a large one
// as a snapshot of now and then, and entries with what each save since has changed.
//
// Entries are numbered and written in turn to a fixed number of objects, the slots: entry n
// takes the place of entry n-slots, on the condition that this is what is there. So no other
// client has written entry n, now or ever, if the write succeeds; of two clients that build
// on the same state one gets a conflict, however long it was suspended. An entry is
// overwritten only once a snapshot contains it. A reader takes the snapshot and the entries after it, up to the first
// slot that has an older entry: at that moment there was no newer state. If it finds a newer
// entry than expected there is a newer snapshot, and it begins again.
//
// The snapshot is written in the background, on the condition that it replaces the former
// one. It is only ever of a state that was saved before, so that it changes nothing for a
// reader, whichever client has written it, and whenever.
//
// A state that has become small is one object again: ending.go.
//
// What a document means, and under which lease it is written, is for others. Start with
// [Load] and [Writer].
package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Position is a saved state.
type Position struct {
	Generation store.Generation // of the snapshot; store.Absent: there is no state
	Serial     uint64
	Nonce      string
	Written    time.Time // by the store's clock; zero of what the process itself has written
	Newer      bool      // than the snapshot: entries have followed that

	journal  *state.Journal    // as in the snapshot; nil: the snapshot is the state
	number   uint64            // of the last entry
	nonces   map[uint64]string // of the states since the snapshot, by the number of their entry
	ended    bool              // the last entry was the journal's last
	revision uint64            // of the snapshot
	small    bool              // the snapshot needs no journal
	size     int               // of the snapshot in bytes, as it is stored
	tail     int               // of the entries since
}

// errLapped says that the journal has gone on beyond what a reader has.
var errLapped = errors.New("the state changed while it was read")

// maxReads bounds how often a reader begins again.
const maxReads = 10

// Load reads the state: a store.ErrNotFound if there is none, and a state.ErrDamaged if
// the snapshot or an entry is. With an error comes the generation of the snapshot, so that it can
// be replaced. The document is the caller's alone.
func Load(ctx context.Context, s store.Store) (*state.Document, Position, error) {
	doc, at, _, err := load(ctx, s, false)
	if err == nil {
		doc, err = resealed(ctx, s, doc, at)
	}
	return doc, at, err
}

// resealed is a document with a journal as the present key seals it. One without is sealed
// anew as an object.
func resealed(ctx context.Context, s store.Store, doc *state.Document, at Position) (*state.Document, error) {
	if r, ok := store.AsResealer(s); ok && at.journal != nil {
		return r.ResealDocument(ctx, doc)
	}
	return doc, nil
}

// load also lists the generations of the slots, if asked, and before it reads entries: what
// it lists is no newer than what it reads.
func load(ctx context.Context, s store.Store, listed bool) (*state.Document, Position, map[string]store.Generation, error) {
	for range maxReads {
		doc, at, err := loadSnapshot(ctx, s)
		if err != nil || at.journal == nil {
			return doc, at, nil, err
		}
		var slots map[string]store.Generation
		if listed {
			if slots, err = listSlots(ctx, s); err != nil {
				return nil, at, nil, err
			}
		}
		next, now, err := readTail(ctx, s, doc, at)
		if errors.Is(err, errLapped) {
			continue
		}
		if err != nil {
			return nil, at, nil, err
		}
		return next, now, slots, nil
	}
	return nil, Position{}, nil, fmt.Errorf("read the state in %s: it changed %d times meanwhile; try again", s.Location(), maxReads)
}

// loadSnapshot reads the snapshot, without its journal.
func loadSnapshot(ctx context.Context, s store.Store) (*state.Document, Position, error) {
	object, err := s.Get(ctx, store.StateKey)
	at := Position{Generation: object.Generation}
	if err != nil {
		return nil, at, fmt.Errorf("read state: %w", err)
	}
	doc, err := state.Decode(object.Data)
	if err != nil {
		return nil, at, fmt.Errorf("read %s in %s: %w", store.StateKey, s.Location(), err)
	}
	at.Serial, at.Nonce, at.revision, at.size = doc.Serial, doc.Nonce, doc.Revision, len(object.Data)
	at.Written = object.Updated
	if at.journal = doc.Journal; at.journal != nil {
		at.number, at.small = at.journal.Entries, isSmall(object.Data, at.journal)
		at.nonces = map[uint64]string{at.number: at.Nonce}
		doc.Journal = nil
	}
	return &doc, at, nil
}

// listSlots returns the generations of the slots and of the snapshot.
func listSlots(ctx context.Context, s store.Store) (map[string]store.Generation, error) {
	found, err := s.List(ctx, store.JournalPrefix, store.StateKey)
	if err != nil {
		return nil, fmt.Errorf("list the state's journal: %w", err)
	}
	slots := make(map[string]store.Generation, len(found))
	for i := range found {
		slots[found[i].Key] = found[i].Generation
	}
	return slots, nil
}

// readAhead is how many entries are read at a time.
const readAhead = 16

// readTail reads what follows a state; errLapped if only a new snapshot can tell.
func readTail(ctx context.Context, s store.Store, doc *state.Document, at Position) (*state.Document, Position, error) {
	first := at.number + 1
	var entries []*state.Entry
	var keys []string
	now := at
	now.nonces = make(map[uint64]string, len(at.nonces))
	for number, nonce := range at.nonces {
		if number+uint64(at.journal.Slots) >= at.number {
			now.nonces[number] = nonce
		}
	}
	for complete, ahead := false, 1; !complete; ahead = readAhead {
		found, err := readSlots(ctx, s, at.journal, now.number+1, ahead)
		if err != nil {
			return nil, now, err
		}
		for _, slot := range found {
			follows, err := slot.follows(ctx, s, at, now.number+1)
			if err != nil {
				return nil, now, err
			}
			if !follows {
				complete = true
				break
			}
			entries, keys = append(entries, slot.entry), append(keys, slot.key)
			now.number++
			now.nonces[now.number] = slot.entry.Nonce
			now.Serial, now.Nonce, now.tail = slot.entry.Serial, slot.entry.Nonce, now.tail+slot.size
			if slot.entry.Last {
				now.ended, complete = true, true
				break
			}
			now.Written, now.Newer = slot.written, true
		}
	}
	if now.ended { // what follows takes the snapshot's place
		if err := checkSnapshot(ctx, s, at, nil); err != nil {
			return nil, now, err
		}
	}
	next, done, err := state.Replayed(doc, entries)
	if err != nil {
		return nil, now, fmt.Errorf("read %s in %s (entry %d of the state's journal): %w", keys[done], s.Location(), first+uint64(done), err)
	}
	return next, now, nil
}

// slot is what was found in one.
type slot struct {
	key   string
	entry *state.Entry // nil: there is no object
	size  int
	err   error // it cannot be read

	written time.Time
}

// readSlots reads the slots of as many entries.
func readSlots(ctx context.Context, s store.Store, j *state.Journal, number uint64, ahead int) ([]slot, error) {
	found := make([]slot, min(ahead, j.Slots))
	group, ctx := errgroup.WithContext(ctx)
	for i := range found {
		group.Go(func() error {
			key := store.JournalKey(j.Slot(number + uint64(i)))
			object, err := s.Get(ctx, key)
			found[i] = slot{key: key, size: len(object.Data), written: object.Updated}
			switch {
			case errors.Is(err, store.ErrNotFound):
				return nil
			case err != nil && object.Generation == store.Absent:
				return fmt.Errorf("read the state's journal: %w", err)
			case err == nil:
				found[i].entry, err = state.DecodeEntry(object.Data)
			}
			if err != nil {
				found[i].err = fmt.Errorf("read %s in %s: %w", key, s.Location(), err)
			}
			return nil
		})
	}
	return found, group.Wait()
}

// follows reports whether a slot has the entry of that number, or an older one or none
// because it was not written yet.
func (f *slot) follows(ctx context.Context, s store.Store, at Position, number uint64) (bool, error) {
	j := at.journal
	switch {
	case f.err != nil:
		return false, f.err
	case f.entry == nil && number > uint64(j.Slots):
		return false, fmt.Errorf("%w: %s in %s, which has an entry of the state's journal, is missing", state.ErrDamaged, f.key, s.Location())
	case f.entry == nil:
		return false, checkUnwritten(ctx, s, at, number)
	case f.entry.Journal != j.ID && f.entry.Number == 0 && f.entry.Serial > at.Serial:
		return false, checkSnapshot(ctx, s, at, fmt.Errorf("%w: a command that was to replace it has ended before it had written %s in %s; run that again",
			state.ErrDamaged, store.StateKey, s.Location()))
	case f.entry.Journal != j.ID:
		return false, checkSnapshot(ctx, s, at, nil)
	case f.entry.Number > number:
		return false, checkSnapshot(ctx, s, at, fmt.Errorf("%w: %s in %s is older than the journal beside it, whose %s has entry %d where %d is to follow",
			state.ErrDamaged, store.StateKey, s.Location(), f.key, f.entry.Number, number))
	}
	return f.entry.Number == number, nil
}

// checkUnwritten fails where a slot is empty that comes before one which is not: in the
// first turn of a journal the slots fill in order.
func checkUnwritten(ctx context.Context, s store.Store, at Position, number uint64) error {
	j := at.journal
	slots, err := listSlots(ctx, s)
	if err != nil {
		return err
	}
	if _, there := slots[store.JournalKey(j.Slot(number))]; there || slots[store.StateKey] != at.Generation {
		return errLapped // written just now, or another journal has begun
	}
	for later := number + 1; later <= uint64(j.Slots); later++ {
		key := store.JournalKey(j.Slot(later))
		if _, there := slots[key]; !there {
			continue
		}
		object, err := s.Get(ctx, key)
		if err != nil {
			return fmt.Errorf("read the state's journal: %w", err)
		}
		if e, err := state.DecodeEntry(object.Data); err != nil || e.Journal == j.ID {
			return fmt.Errorf("%w: %s in %s, which has entry %d of the state's journal, is missing, while %s is there",
				state.ErrDamaged, store.JournalKey(j.Slot(number)), s.Location(), number, key)
		}
	}
	return nil
}

// checkSnapshot returns errLapped where the snapshot is another one by now, and otherwise.
func checkSnapshot(ctx context.Context, s store.Store, at Position, otherwise error) error {
	found, err := s.List(ctx, store.StateKey)
	if err != nil {
		return fmt.Errorf("list the state: %w", err)
	}
	if len(found) != 1 || found[0].Generation != at.Generation {
		return errLapped
	}
	return otherwise
}
