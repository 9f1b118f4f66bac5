package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/fray-ml/fray/state/store"
)

func testRace(t *testing.T, s store.Store) {
	gen := put(t, s, "state.json", "start", store.Absent)
	race(t, s, gen)
}

func testCreateRace(t *testing.T, s store.Store) { race(t, s, store.Absent) }

// race lets 32 writers write over the same generation.
func race(t *testing.T, s store.Store, from store.Generation) {
	const writers = 32
	var won atomic.Int64
	var winner atomic.Value
	each(t, writers, func(i int) error {
		content := "writer " + strconv.Itoa(i)
		_, err := s.Put(t.Context(), "state.json", []byte(content), from)
		if err == nil {
			won.Add(1)
			winner.Store(content)
		}
		if errors.Is(err, store.ErrConflict) {
			return nil
		}
		return err
	})
	if won.Load() != 1 {
		t.Fatalf("%d of %d writers won, want 1", won.Load(), writers)
	}
	if got := read(t, s, "state.json"); got != winner.Load() {
		t.Errorf("got %q, want the winner's %q", got, winner.Load())
	}
}

func testIncrements(t *testing.T, s store.Store) {
	const workers, times = 8, 10
	each(t, workers, func(int) error {
		for range times {
			if err := Increment(t.Context(), s, "counter.json"); err != nil {
				return err
			}
		}
		return nil
	})
	if got := read(t, s, "counter.json"); got != strconv.Itoa(workers*times) {
		t.Errorf("got %s, want %d", got, workers*times)
	}
}

// Increment adds one to the number under a key, as often as it takes: what
// loses no increment loses no write.
func Increment(ctx context.Context, s store.Store, key string) error {
	for {
		object, err := s.Get(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		n := 0
		if err == nil {
			if n, err = strconv.Atoi(string(object.Data)); err != nil {
				return fmt.Errorf("the number is torn: %w", err)
			}
		}
		_, err = s.Put(ctx, key, []byte(strconv.Itoa(n+1)), object.Generation)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// Whole returns content of a length that depends on n; IsWhole tells it from
// any part or mixture of such contents.
func Whole(n int) []byte {
	return bytes.Repeat([]byte{byte('a' + n%26)}, 1+(n*7919)%20000)
}

// IsWhole reports whether data is what Whole returned for some n below limit.
func IsWhole(data []byte, limit int) bool {
	for n := range limit {
		if bytes.Equal(data, Whole(n)) {
			return true
		}
	}
	return false
}

func testWhole(t *testing.T, s store.Store) {
	const writes, readers = 60, 4
	put(t, s, "state.json", string(Whole(0)), store.Absent)
	var done atomic.Bool
	var seen [writes]atomic.Int64 // generation of each content
	each(t, readers+1, func(worker int) error {
		if worker == readers {
			defer done.Store(true)
			for n := range writes {
				if _, err := s.Put(t.Context(), "state.json", Whole(n), store.Any); err != nil {
					return err
				}
			}
			return nil
		}
		last := store.Absent
		for !done.Load() {
			object, err := s.Get(t.Context(), "state.json")
			if err != nil {
				return err
			}
			if !IsWhole(object.Data, writes) {
				return fmt.Errorf("read %d bytes that no writer wrote", len(object.Data))
			}
			if object.Size != int64(len(object.Data)) || object.Generation < last {
				return fmt.Errorf("read %d bytes with %+v after generation %d", len(object.Data), object.Attrs, last)
			}
			last = object.Generation
			for n := 1; n < writes; n++ { // content 0 is written twice
				gen := int64(object.Generation)
				if bytes.Equal(object.Data, Whole(n)) && !seen[n].CompareAndSwap(0, gen) && seen[n].Load() != gen {
					return fmt.Errorf("content %d came with generations %d and %d", n, seen[n].Load(), gen)
				}
			}
		}
		return nil
	})
}
