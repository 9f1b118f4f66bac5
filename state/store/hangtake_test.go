package store_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// leaseTTL is the validity in the tests of lease writes that hang.
const leaseTTL = 15 * time.Second

// slowLease is a store in which one write of the lease takes its time.
type slowLease struct {
	store.Store
	nth    int64         // which write, from 1
	delay  time.Duration // before it happens
	deaf   bool          // it does not end with its context
	lands  bool          // it happens although its context has ended before
	writes atomic.Int64
}

func (s *slowLease) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	if key != store.LeaseKey || s.writes.Add(1) != s.nth {
		return s.Store.Put(ctx, key, data, want)
	}
	timer := time.NewTimer(s.delay)
	ended := ctx.Done()
	if s.deaf {
		ended = nil
	}
	select {
	case <-timer.C:
		return s.Store.Put(context.WithoutCancel(ctx), key, data, want)
	case <-ended:
	}
	if s.lands {
		go func() {
			<-timer.C
			_, _ = s.Store.Put(context.WithoutCancel(ctx), key, data, want)
		}()
	}
	return 0, context.Cause(ctx)
}

// A lease that took longer to write than it is valid is not handed out: the
// write is given up in time and made again.
func TestALeaseWhoseFirstWriteHangsIsTakenAgain(t *testing.T) {
	tests := []struct {
		name  string
		slow  *slowLease
		epoch uint64
	}{
		{"the write does not happen", &slowLease{nth: 1, delay: time.Hour}, 1},
		{"the write happens when it was given up", &slowLease{nth: 1, delay: leaseTTL/4 + time.Second, lands: true}, 1},
		{"the write would happen after the expiry", &slowLease{nth: 1, delay: leaseTTL + 5*time.Second}, 1},
		{"the store does not give the write up", &slowLease{nth: 1, delay: leaseTTL + 5*time.Second, deaf: true}, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := test.slow
				s.Store = storetest.NewMemory()
				held, err := store.Acquire(t.Context(), s, store.LeaseConfig{TTL: leaseTTL, Command: "test"})
				if err != nil {
					t.Fatal(err)
				}
				if left := time.Until(held.Lease().ExpiresAt); left < leaseTTL/2 {
					t.Errorf("the lease lasts %v more when it is handed out, want at least half of %v", left, leaseTTL)
				}
				if held.Epoch() != test.epoch {
					t.Errorf("epoch %d, want %d", held.Epoch(), test.epoch)
				}
				time.Sleep(time.Minute)
				if err := held.Valid(); err != nil {
					t.Errorf("a minute later: %v", err)
				}
				if err := held.Release(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(2 * time.Minute) // what is under way lands
				lease, err := store.ReadLease(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				if lease.Live(time.Now()) {
					t.Errorf("the lease binds others after its release: %+v", lease)
				}
			})
		})
	}
}

// A store that cannot be written does not keep a command waiting for ever.
func TestALeaseThatCannotBeWrittenIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := store.Acquire(t.Context(), deadLease{storetest.NewMemory()}, store.LeaseConfig{TTL: leaseTTL, Command: "test"})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that the deadline has passed", err)
		}
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}

// deadLease is a store whose lease is never written.
type deadLease struct{ store.Store }

func (s deadLease) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	if key != store.LeaseKey {
		return s.Store.Put(ctx, key, data, want)
	}
	<-ctx.Done()
	return 0, context.Cause(ctx)
}

// A holder whose renewals hang stops by the expiry of its last write, and its
// release waits no longer than it is told to, even where the store gives nothing up.
func TestAHolderWhoseRenewalHangsStopsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowLease{Store: storetest.NewMemory(), nth: 2, delay: 10 * time.Minute, deaf: true}
		held, err := store.Acquire(t.Context(), s, store.LeaseConfig{TTL: leaseTTL, Command: "test"})
		if err != nil {
			t.Fatal(err)
		}
		expires := held.Lease().ExpiresAt
		<-held.Context().Done()
		if late := time.Since(expires); late > 0 {
			t.Errorf("the holder stopped %v after the expiry", late)
		}
		if !errors.Is(held.Valid(), store.ErrLeaseLost) {
			t.Errorf("the lease is %v, want lost", held.Valid())
		}
		released := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := held.Release(ctx); err != nil {
			t.Errorf("the release of a lost lease: %v", err)
		}
		if took := time.Since(released); took > 10*time.Second {
			t.Errorf("the release took %v", took)
		}
		time.Sleep(time.Hour) // the write that hung comes back
		if err := held.Valid(); !errors.Is(err, store.ErrLeaseLost) {
			t.Errorf("the lease is %v after the late renewal, want lost", err)
		}
	})
}

// A release that hangs is given up when the lease lapses by itself.
func TestAReleaseThatHangsEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowLease{Store: storetest.NewMemory(), nth: 2, delay: time.Hour}
		held, err := store.Acquire(t.Context(), s, store.LeaseConfig{TTL: leaseTTL, Command: "test"})
		if err != nil {
			t.Fatal(err)
		}
		expires := held.Lease().ExpiresAt
		if err := held.Release(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that the deadline has passed", err)
		}
		if late := time.Since(expires); late > 0 {
			t.Errorf("the release ended %v after the expiry", late)
		}
	})
}
