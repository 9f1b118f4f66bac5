package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

const ttl = 15 * time.Second // the default

var errDown = errors.New("the store is down")

// failing returns a wrapper whose writes of the lease fail while down is set.
func failing(s store.Store, down *atomic.Bool) *storetest.Faulty {
	return &storetest.Faulty{Store: s, Before: func(op storetest.Op, key string) error {
		if down.Load() && key == store.LeaseKey {
			return errDown
		}
		return nil
	}}
}

func acquire(t *testing.T, s store.Store, cfg store.LeaseConfig) *store.Held {
	t.Helper()
	held, err := store.Acquire(t.Context(), s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func release(t *testing.T, held *store.Held) {
	t.Helper()
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

func readLease(t *testing.T, s store.Store) store.Lease {
	t.Helper()
	l, err := store.ReadLease(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLeaseIsRenewedWhileHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		held := acquire(t, s, store.LeaseConfig{})
		writes := 0
		for last := readLease(t, s); writes < 20; {
			time.Sleep(time.Second)
			l := readLease(t, s)
			if !l.Live(time.Now()) {
				t.Fatalf("expired at %v although it is held", l.ExpiresAt)
			}
			if l.Nonce != last.Nonce {
				writes++
				last = l
			}
		}
		if err := held.Valid(); err != nil || held.Context().Err() != nil {
			t.Errorf("valid: %v", err)
		}
		if l := readLease(t, s); l.Epoch != 1 || l.RenewedAt.Sub(l.AcquiredAt) < 20*4*time.Second {
			t.Errorf("got %+v, want epoch 1, long renewed", l)
		}
		release(t, held)
	})
}

func TestLeaseThatCannotBeRenewedIsLostAtItsExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		s := failing(storetest.NewMemory(), &down)
		began := time.Now()
		held := acquire(t, s, store.LeaseConfig{})
		down.Store(true)
		time.Sleep(ttl - time.Millisecond)
		if err := held.Valid(); err != nil {
			t.Errorf("before the expiry: %v", err)
		}
		<-held.Context().Done()
		if took := time.Since(began); took != ttl {
			t.Errorf("lost after %v, want %v", took, ttl)
		}
		cause := context.Cause(held.Context())
		if !errors.Is(cause, store.ErrLeaseLost) || !strings.Contains(cause.Error(), errDown.Error()) {
			t.Errorf("cause: got %v, want ErrLeaseLost because of %v", cause, errDown)
		}
		if !errors.Is(held.Valid(), store.ErrLeaseLost) {
			t.Errorf("valid: got %v, want ErrLeaseLost", held.Valid())
		}
		release(t, held)
	})
}

func TestLeaseSurvivesAShortOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		s := failing(storetest.NewMemory(), &down)
		held := acquire(t, s, store.LeaseConfig{})
		for range 10 {
			down.Store(true)
			time.Sleep(ttl / 2)
			down.Store(false)
			time.Sleep(ttl)
			if err := held.Valid(); err != nil {
				t.Fatal(err)
			}
		}
		release(t, held)
	})
}

func TestLeaseRenewalThatHangsIsLostAtItsExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var writes atomic.Int64
		s := &storetest.Faulty{Store: storetest.NewMemory(), Before: func(op storetest.Op, key string) error {
			if op == storetest.OpPut && writes.Add(1) == 2 {
				<-hang // a store that heeds no context
			}
			return nil
		}}
		began := time.Now()
		held := acquire(t, s, store.LeaseConfig{})
		<-held.Context().Done()
		if took := time.Since(began); took != ttl {
			t.Errorf("lost after %v, want %v", took, ttl)
		}
		close(hang)
		release(t, held)
	})
}

func TestLeaseRenewalWhoseReplyIsLost(t *testing.T) {
	for _, reply := range []error{errDown, store.ErrConflict} {
		synctest.Test(t, func(t *testing.T) {
			var writes atomic.Int64
			memory := storetest.NewMemory()
			s := &storetest.Faulty{Store: memory, After: func(op storetest.Op, key string) error {
				if op == storetest.OpPut && writes.Add(1)%2 == 0 {
					return reply
				}
				return nil
			}}
			held := acquire(t, s, store.LeaseConfig{})
			time.Sleep(10 * ttl)
			if err := held.Valid(); err != nil {
				t.Errorf("reply %v: %v", reply, err)
			}
			release(t, held)
			if l := readLease(t, memory); l.Epoch != 1 || !l.Released {
				t.Errorf("reply %v: got %+v, want epoch 1, released", reply, l)
			}
		})
	}
}

// A write whose reply is lost, and the read that would settle it too, is found
// by the next renewal, which meets a generation it does not know.
func TestLeaseRenewalWhoseReplyAndReadAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down, tried atomic.Bool
		s := &storetest.Faulty{
			Store: storetest.NewMemory(),
			Before: func(op storetest.Op, key string) error {
				if op == storetest.OpGet && down.Load() {
					return errDown
				}
				return nil
			},
			After: func(op storetest.Op, key string) error {
				if op == storetest.OpPut && down.Load() {
					tried.Store(true)
					return errDown
				}
				return nil
			},
		}
		held := acquire(t, s, store.LeaseConfig{})
		down.Store(true)
		time.Sleep(ttl * 2 / 3)
		down.Store(false)
		time.Sleep(ttl)
		if err := held.Valid(); err != nil || !tried.Load() {
			t.Errorf("valid: %v, a reply was lost: %v", err, tried.Load())
		}
		release(t, held)
	})
}

func TestLeaseTakeoverEndsTheFormerHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		var down atomic.Bool
		first := acquire(t, failing(memory, &down), store.LeaseConfig{Command: "first"})
		down.Store(true)
		began := time.Now()
		second, err := store.Acquire(t.Context(), memory, store.LeaseConfig{Command: "second", Wait: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < ttl || took > ttl+time.Second {
			t.Errorf("took over after %v, want %v", took, ttl)
		}
		if second.Epoch() != 2 {
			t.Errorf("epoch: got %d, want 2", second.Epoch())
		}
		synctest.Wait() // both come at the same moment
		if first.Context().Err() == nil {
			t.Error("the first holder's context goes on")
		}
		down.Store(false)
		release(t, first)
		if l := readLease(t, memory); l.Command != "second" || l.Released {
			t.Errorf("got %+v, want the second's", l)
		}
		release(t, second)
	})
}

func TestLeaseRemovedByHandIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		held := acquire(t, s, store.LeaseConfig{})
		if err := s.Delete(t.Context(), store.LeaseKey); err != nil {
			t.Fatal(err)
		}
		<-held.Context().Done()
		if cause := context.Cause(held.Context()); !strings.Contains(cause.Error(), "removed lease.json") {
			t.Errorf("cause: got %v", cause)
		}
		release(t, held)
	})
}

func TestLeaseWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		held := acquire(t, s, store.LeaseConfig{})
		began := time.Now()
		_, err := store.Acquire(t.Context(), s, store.LeaseConfig{Wait: 3 * time.Second})
		var refused *store.HeldError
		if !errors.As(err, &refused) || time.Since(began) != 3*time.Second {
			t.Errorf("got %v after %v, want a HeldError after 3s", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := store.Acquire(ctx, s, store.LeaseConfig{Wait: time.Hour}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's end", err)
		}
		release(t, held)
	})
}

// A holder whose clock was far ahead left an expiry that never comes.
func TestLeaseThatIsNotRenewedIsTakenOverWhateverItsExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		ahead := store.Lease{
			Holder: "00", Epoch: 4, RenewedAt: time.Now().Add(time.Hour), ExpiresAt: time.Now().Add(time.Hour + ttl),
		}
		data, err := json.Marshal(ahead)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), store.LeaseKey, data, store.Absent); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		held := acquire(t, s, store.LeaseConfig{Wait: time.Minute})
		if took := time.Since(began); held.Epoch() != 5 || took < ttl || took > ttl+time.Second {
			t.Errorf("epoch %d after %v, want 5 after %v", held.Epoch(), took, ttl)
		}
		release(t, held)
	})
}

func TestLeaseOutlivesTheContextItWasAcquiredWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		ctx, cancel := context.WithCancel(t.Context())
		held, err := store.Acquire(ctx, s, store.LeaseConfig{})
		if err != nil {
			t.Fatal(err)
		}
		cancel() // the first Ctrl-C; the last save is still to come
		time.Sleep(10 * ttl)
		if err := held.Valid(); err != nil || held.Context().Err() == nil {
			t.Errorf("valid: %v, context: %v, want a lease that is held and a context that ended", err, held.Context().Err())
		}
		release(t, held)
	})
}

func TestLeaseAfterTheMachineSlept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		var slept atomic.Int64
		// Without the monotonic part, as it is seen by others.
		now := func() time.Time { return time.Now().Round(0).Add(time.Duration(slept.Load())) }
		held := acquire(t, s, store.LeaseConfig{Now: now})
		slept.Store(int64(time.Hour))
		if err := held.Valid(); !errors.Is(err, store.ErrLeaseLost) {
			t.Errorf("valid: got %v, want ErrLeaseLost", err)
		}
		if !errors.Is(context.Cause(held.Context()), store.ErrLeaseLost) {
			t.Errorf("cause: got %v, want ErrLeaseLost", context.Cause(held.Context()))
		}
		release(t, held)
	})
}

func TestLeaseDamagedIsLeftAsItIs(t *testing.T) {
	s := storetest.NewMemory()
	if _, err := s.Put(t.Context(), store.LeaseKey, []byte(`{"holder":`), store.Absent); err != nil {
		t.Fatal(err)
	}
	_, err := store.Acquire(t.Context(), s, store.LeaseConfig{Wait: time.Hour})
	if err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("got %v, want an error that says it is damaged", err)
	}
	if object, err := s.Get(t.Context(), store.LeaseKey); err != nil || string(object.Data) != `{"holder":` {
		t.Errorf("got %q, %v, want it untouched", object.Data, err)
	}
}

func TestHandoverThatIsIgnoredNamesTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		watch := acquire(t, s, store.LeaseConfig{Command: "fray watch", Yields: true})
		began := time.Now()
		_, err := store.Acquire(t.Context(), s, store.LeaseConfig{})
		var refused *store.HeldError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "fray watch") {
			t.Errorf("got %v, want a HeldError that names fray watch", err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("gave up after %v, want 10s", took)
		}
		if pending, err := store.PendingHandover(t.Context(), s); err != nil || pending {
			t.Errorf("pending: got %v, %v after the one who asked gave up", pending, err)
		}
		release(t, watch)
	})
}

func TestHandoverOfARequesterThatDiedExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		h, err := store.RequestHandover(t.Context(), s, store.Lease{Host: "laptop"})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		watch := acquire(t, s, store.LeaseConfig{Yields: true})
		if time.Now().Before(h.Expires) {
			t.Errorf("came back after %v although a process waits until %v", time.Since(began), h.Expires.Sub(h.At))
		}
		release(t, watch)
	})
}

func TestHandoverOfAnotherIsNotCleared(t *testing.T) {
	s := storetest.NewMemory()
	first, err := store.RequestHandover(t.Context(), s, store.Lease{Host: "one"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := store.RequestHandover(t.Context(), s, store.Lease{Host: "two"})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		clear store.Handover
		want  bool
	}{{first, true}, {second, false}} {
		if err := store.ClearHandover(t.Context(), s, step.clear); err != nil {
			t.Fatal(err)
		}
		if pending, err := store.PendingHandover(t.Context(), s); err != nil || pending != step.want {
			t.Errorf("after %s cleared: pending %v, %v, want %v", step.clear.By, pending, err, step.want)
		}
	}
}
