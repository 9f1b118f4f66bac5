package journal

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/fray-ml/fray/state/store"
)

// The first byte of an object of a journal.
const (
	kindOpened   = 'o' // by a process; kept for ever, so that a former one can never write under its number
	kindChunk    = 'c'
	kindSnapshot = 's' // stands for all before it
)

// smallest is what an object counts for at least: many small ones are as slow to read as few large ones.
const smallest = 16 << 10

// parallelReads and parallelDeletes are how many objects are read or deleted at once.
const (
	parallelReads   = 16
	parallelDeletes = 32
)

// objects is a journal in a store: numbered objects, each written only if there is none of its number.
type objects struct {
	store  store.Store
	prefix string
	next   int
	old    []string // keys that the next snapshot replaces

	deleting sync.WaitGroup
	mu       sync.Mutex
	left     []string // keys that are replaced and could not be deleted
}

// OpenStore opens the journal under a prefix of a store ("rl/trajectory_pool/") and returns its records. A process
// that had it open gets ErrReplaced at its next write.
func OpenStore(ctx context.Context, s store.Store, prefix string) (*Journal, [][]byte, error) {
	o := &objects{store: s, prefix: prefix}
	for {
		records, size, err := o.read(ctx)
		if err == nil {
			err = o.put(ctx, append([]byte{kindOpened}, rand.Text()...))
		}
		if errors.Is(err, ErrReplaced) || errors.Is(err, store.ErrNotFound) {
			continue // one that is replaced has written meanwhile, or begun a snapshot; what it wrote counts
		}
		if err != nil {
			return nil, nil, fmt.Errorf("open the journal %s in %s: %w", prefix, s.Location(), err)
		}
		return start(context.WithoutCancel(ctx), o, size), records, nil // until it is closed
	}
}

func (o *objects) key(number int) string { return fmt.Sprintf("%s%016d", o.prefix, number) }

func (o *objects) read(ctx context.Context) (records [][]byte, size int64, err error) {
	attrs, err := o.store.List(ctx, o.prefix)
	if err != nil {
		return nil, 0, err
	}
	contents := make([][]byte, len(attrs))
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for i, a := range attrs {
		group.Go(func() error {
			object, err := o.store.Get(reading, a.Key)
			contents[i] = object.Data
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	o.next, o.old = 0, nil
	for i, a := range attrs {
		data := contents[i]
		if _, err := fmt.Sscanf(a.Key[len(o.prefix):], "%d", &o.next); err != nil || len(data) == 0 {
			return nil, 0, fmt.Errorf("%s: %w", a.Key, ErrDamaged)
		}
		o.next++
		if data[0] == kindOpened {
			continue
		}
		if data[0] == kindSnapshot {
			records, size = nil, 0
		}
		more, length, err := decodeAll(data[1:])
		if err != nil || length != len(data)-1 {
			return nil, 0, fmt.Errorf("%s: %w", a.Key, ErrDamaged)
		}
		records = append(records, more...)
		size += max(int64(len(data)), smallest)
		o.old = append(o.old, a.Key)
	}
	return records, size, nil
}

// put writes the next object.
func (o *objects) put(ctx context.Context, data []byte) error {
	key := o.key(o.next)
	_, err := o.store.Put(ctx, key, data, store.Absent)
	if errors.Is(err, store.ErrConflict) {
		if there, failed := o.store.Get(ctx, key); failed != nil || !bytes.Equal(there.Data, data) {
			return errors.Join(ErrReplaced, failed)
		}
		err = nil // the store did it at an attempt whose answer was lost
	}
	if err != nil {
		return err
	}
	o.next++
	if data[0] != kindOpened {
		o.old = append(o.old, key)
	}
	return nil
}

func (o *objects) write(ctx context.Context, chunk []byte) error {
	return o.put(ctx, append([]byte{kindChunk}, chunk...))
}

func (o *objects) replace(ctx context.Context, chunks iter.Seq[[]byte]) error {
	data := []byte{kindSnapshot}
	for chunk := range chunks {
		data = append(data, chunk...)
	}
	replaced := o.old
	o.old = nil
	if err := o.put(ctx, data); err != nil {
		return err
	}
	o.deleting.Wait()
	o.deleting.Go(func() { o.delete(ctx, append(replaced, o.left...)) })
	return nil
}

// delete deletes what a snapshot has replaced, while further records are written: it would count for nothing if it stayed.
func (o *objects) delete(ctx context.Context, keys []string) {
	o.left = nil
	var group errgroup.Group
	group.SetLimit(parallelDeletes)
	for _, key := range keys {
		group.Go(func() error {
			if err := o.store.Delete(ctx, key); err != nil {
				o.mu.Lock()
				o.left = append(o.left, key) // the next snapshot, or process, tries again
				o.mu.Unlock()
			}
			return nil
		})
	}
	_ = group.Wait()
}

func (o *objects) floor() int64 { return smallest }

func (o *objects) close() error {
	o.deleting.Wait()
	return nil
}
