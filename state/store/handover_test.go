package store_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// billed is a store that is far away.
type billed struct{ store.Store }

func (billed) WriteInterval() time.Duration { return time.Second }

// A holder whose requests cost something reads no request for its lease all the time; asked, it
// learns of that with its next renewal, and its lease is as valid as before.
func TestAHolderLearnsOfAHandoverByItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		reads := 0
		s := &storetest.Faulty{Store: billed{storetest.NewMemory()}, Before: func(op storetest.Op, key string) error {
			mu.Lock()
			defer mu.Unlock()
			if op == storetest.OpGet && key == store.HandoverKey {
				reads++
			}
			return nil
		}}
		watch, err := store.Acquire(t.Context(), s, store.LeaseConfig{TTL: 3500 * time.Millisecond, Yields: true})
		if err != nil {
			t.Fatal(err)
		}
		reads = 0
		for range 60 { // steps
			time.Sleep(time.Second)
			if pending, err := watch.HandoverPending(t.Context()); err != nil || pending {
				t.Fatalf("got %t, %v before it was asked", pending, err)
			}
		}
		if reads > 13 {
			t.Errorf("read the request %d times in a minute of steps, want no more than 13", reads)
		}
		began := time.Now()
		asking := make(chan *store.Held)
		go func() {
			held, err := store.Acquire(t.Context(), s, store.LeaseConfig{TTL: time.Minute})
			if err != nil {
				t.Error(err)
			}
			asking <- held
		}()
		select {
		case <-watch.Asked():
		case <-time.After(5 * time.Second):
			t.Error("its lease tells it nothing")
		}
		if took := time.Since(began); took > 1300*time.Millisecond {
			t.Errorf("learned of it after %s, want a renewal later", took)
		}
		if pending, err := watch.HandoverPending(t.Context()); err != nil || !pending {
			t.Errorf("got %t, %v, want it asked for", pending, err)
		}
		time.Sleep(7 * time.Second) // it ends what it does
		if err := watch.Valid(); err != nil || watch.Context().Err() != nil {
			t.Errorf("got %v, want its lease", err)
		}
		if err := watch.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		held := <-asking
		if held == nil {
			t.FailNow()
		}
		if held.Epoch() != watch.Epoch()+1 {
			t.Errorf("got epoch %d, want one more than %d", held.Epoch(), watch.Epoch())
		}
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// A lease that is marked lapses when it would have lapsed: its holder is dead.
func TestAMarkKeepsNoLeaseAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		dead := false
		memory := billed{storetest.NewMemory()}
		s := &storetest.Faulty{Store: memory, Before: func(op storetest.Op, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			if dead && op == storetest.OpPut {
				return context.DeadlineExceeded
			}
			return nil
		}}
		watch, err := store.Acquire(t.Context(), s, store.LeaseConfig{TTL: 4 * time.Second, Yields: true})
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		dead = true
		mu.Unlock()
		lapses := watch.Lease().ExpiresAt
		held, err := store.Acquire(t.Context(), memory, store.LeaseConfig{TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if at := held.Lease().AcquiredAt; at.Before(lapses) || at.Sub(lapses) > 2*time.Second {
			t.Errorf("taken over at %s, want soon after it lapsed at %s", at, lapses)
		}
		if watch.Valid() == nil {
			t.Error("two hold the lease")
		}
		_ = watch.Release(t.Context())
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
