package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// How much is indexed at once.
const (
	unindexedChunks = 16 // of former holders that a reader reads without an index
	unwrittenChunks = 8  // of this one: the index is written whole, and has a megabyte where much is kept
	indexedAtOnce   = 64 // of them, so that a first index takes no step long
)

// eventIndexer keeps the index of the chunks that grow no more.
type eventIndexer struct {
	index      *store.EventIndex // nil: not read yet
	generation store.Generation
	unwritten  int // chunks that it has and that the store does not
}

// save brings the index up to date: with a chunk that is full, and with those of former holders if
// there are many. own is the chunk that still grows.
func (x *eventIndexer) save(ctx context.Context, r *Recorder, listed []store.Attrs, full *fullChunk) error {
	if x.index == nil {
		var err error
		if x.index, x.generation, err = store.ReadEventIndex(ctx, r.Store); err != nil {
			return err
		}
	}
	own := store.EventsKey(r.Epoch, r.number)
	missing := slices.DeleteFunc(slices.Clone(listed), func(a store.Attrs) bool {
		return a.Key == own || full != nil && a.Key == full.key || x.index.Has(a)
	})
	if full == nil && len(missing) <= unindexedChunks {
		return nil
	}
	if full != nil {
		x.index.Add(full.key, full.generation, full.events)
		x.unwritten++
	}
	if len(missing) <= unindexedChunks && x.unwritten < unwrittenChunks {
		return nil
	}
	x.index.Keep(listed)
	if len(missing) > unindexedChunks {
		if err := x.read(ctx, r.Store, missing[max(0, len(missing)-indexedAtOnce):]); err != nil {
			return err
		}
	}
	return x.write(ctx, r)
}

// fullChunk is a chunk that was written for the last time.
type fullChunk struct {
	key        string
	generation store.Generation
	events     []state.Event
}

func (x *eventIndexer) read(ctx context.Context, s store.Store, missing []store.Attrs) error {
	keys := make([]string, len(missing))
	for i, a := range missing {
		keys[i] = a.Key
	}
	objects, err := store.GetAll(ctx, s, keys)
	if err != nil {
		return fmt.Errorf("read events for their index: %w", err)
	}
	for i := range objects {
		if o := &objects[i]; o.Key != "" { // it is still there
			x.index.Add(o.Key, o.Generation, store.DecodeEvents(o.Data))
		}
	}
	return nil
}

func (x *eventIndexer) write(ctx context.Context, r *Recorder) error {
	data, err := x.index.Encode()
	if err != nil {
		return err
	}
	if err := r.Valid(); err != nil {
		return err
	}
	generation, err := r.Store.Put(ctx, store.EventIndexKey, data, x.generation)
	if err != nil {
		x.index = nil // read again before the next one
		if errors.Is(err, store.ErrConflict) {
			return nil // a reader does without this chunk
		}
		return fmt.Errorf("write the index of events: %w", err)
	}
	x.generation, x.unwritten = generation, 0
	return nil
}
