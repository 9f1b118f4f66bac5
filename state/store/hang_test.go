package store_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// hanging is a store in which the second write of the lease, the first renewal,
// is never answered.
type hanging struct {
	store.Store
	writes atomic.Int64
}

func (s *hanging) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	if key == store.LeaseKey && s.writes.Add(1) == 2 {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	}
	return s.Store.Put(ctx, key, data, want)
}

// One renewal that is never answered does not cost the lease.
func TestARenewalThatHangsIsGivenUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hanging{Store: storetest.NewMemory()}
		held, err := store.Acquire(t.Context(), s, store.LeaseConfig{TTL: 15 * time.Second, Command: "test"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := s.writes.Load(); n < 5 {
			t.Errorf("the lease was written %d times, want renewals after the one that hung", n)
		}
		if err := held.Valid(); err != nil {
			t.Errorf("the lease after a renewal that hung: %v", err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
