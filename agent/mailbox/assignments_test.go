package mailbox

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// transfers counts the reads that return content.
type transfers struct {
	*storetest.Memory
	count int
}

func (c *transfers) GetUnless(ctx context.Context, key string, known store.Generation) (store.Object, error) {
	object, err := c.Get(ctx, key)
	if err == nil && object.Generation == known {
		return store.Object{}, store.ErrUnchanged
	}
	c.count++
	return object, err
}

// A poll of an assignment that did not change transfers none of it.
func TestPollTransfersChangesOnly(t *testing.T) {
	s := &transfers{Memory: storetest.NewMemory()}
	p := &Poller{Store: s, Slice: "s", Log: slog.New(slog.DiscardHandler)}
	for generation := range int64(3) {
		data, err := store.Encode(&state.Assignment{Slice: "s", Generation: generation + 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), store.AssignKey("s"), data, store.Any); err != nil {
			t.Fatal(err)
		}
		a, err := p.poll(t.Context())
		if err != nil || a == nil || a.Generation != generation+1 {
			t.Fatalf("poll after a change: got %+v, %v", a, err)
		}
		before := s.count
		for range 10 {
			if a, err := p.poll(t.Context()); a != nil || err != nil {
				t.Fatalf("poll without a change: got %+v, %v", a, err)
			}
		}
		if s.count != before {
			t.Errorf("polls without a change transferred the assignment %d times", s.count-before)
		}
	}
	if err := s.Delete(t.Context(), store.AssignKey("s")); err != nil {
		t.Fatal(err)
	}
	if a, err := p.poll(t.Context()); a != nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("poll of an assignment that is gone: got %+v, %v", a, err)
	}
}

// reads counts how often an assignment is read.
type reads struct {
	*storetest.Memory
	interval time.Duration
	count    atomic.Int64
}

func (r *reads) WriteInterval() time.Duration { return r.interval }

func (r *reads) Get(ctx context.Context, key string) (store.Object, error) {
	r.count.Add(1)
	return r.Memory.Get(ctx, key)
}

// An assignment for a host that has just begun, or whose task has just ended, is read
// within 5 ms, or within an eighth of the time that it takes to come; one that is not
// expected within 100 ms.
func TestExpectedAssignmentIsReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &reads{Memory: storetest.NewMemory()}
		p := NewPoller(&Poller{Store: s, Slice: "s", Log: slog.New(slog.DiscardHandler)})
		out := make(chan state.Assignment)
		go p.Run(t.Context(), out)
		generation := int64(0)
		takes := func(most time.Duration) {
			t.Helper()
			generation++
			data, err := store.Encode(&state.Assignment{Slice: "s", Generation: generation})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Put(t.Context(), store.AssignKey("s"), data, store.Any); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if got := <-out; got.Generation != generation || time.Since(began) > most {
				t.Errorf("read generation %d after %s, want %d within %s", got.Generation, time.Since(began), generation, most)
			}
		}
		time.Sleep(33 * time.Millisecond)
		takes(5 * time.Millisecond) // the host has just begun
		time.Sleep(31 * time.Second)
		before := s.count.Load()
		time.Sleep(10 * time.Second)
		if n := s.count.Load() - before; n > 101 {
			t.Errorf("without anything to expect it was read %d times in 10 s", n)
		}
		takes(100 * time.Millisecond)
		time.Sleep(31*time.Second + 3*time.Millisecond)
		p.Expect()
		time.Sleep(38 * time.Millisecond)
		takes(5 * time.Millisecond)
		p.Expect()
		time.Sleep(161 * time.Millisecond)
		takes(161 * time.Millisecond / 8)
		time.Sleep(30 * time.Second)
		p.Expect()
		before = s.count.Load()
		time.Sleep(10 * time.Second) // nothing comes after all
		if n := s.count.Load() - before; n > 101+40 {
			t.Errorf("an assignment that did not come was read %d times in 10 s", n)
		}
	})
}

// Whatever is expected, a store that is to be left some time between calls gets it.
func TestExpectedAssignmentLeavesTheStoreItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &reads{Memory: storetest.NewMemory(), interval: time.Second}
		p := NewPoller(&Poller{Store: s, Slice: "s", Log: slog.New(slog.DiscardHandler)})
		go p.Run(t.Context(), make(chan state.Assignment))
		for range 100 {
			p.Expect()
			time.Sleep(100 * time.Millisecond)
		}
		if n := s.count.Load(); n > 11 {
			t.Errorf("read %d times in 10 s, want once a second", n)
		}
	})
}

// An assignment that is expected late in the store's interval is read at its end.
func TestExpectedAssignmentWaitsForTheRestOfTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &reads{Memory: storetest.NewMemory(), interval: time.Second}
		p := NewPoller(&Poller{Store: s, Slice: "s", Log: slog.New(slog.DiscardHandler)})
		go p.Run(t.Context(), make(chan state.Assignment))
		time.Sleep(900 * time.Millisecond)
		p.Expect()
		time.Sleep(101 * time.Millisecond)
		if n := s.count.Load(); n != 2 {
			t.Errorf("read %d times in 1,001 ms, want 2", n)
		}
	})
}
