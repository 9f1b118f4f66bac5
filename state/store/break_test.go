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

// breakLease breaks the lease as it stands.
func breakLease(t *testing.T, s store.Store) store.Lease {
	t.Helper()
	l, err := store.Break(t.Context(), s, store.LeaseConfig{Command: "fray state lease --break"}, readLease(t, s))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// untilLost waits for a holder to find that it is none, in a bubble's time.
func untilLost(t *testing.T, held *store.Held) {
	t.Helper()
	select {
	case <-held.Context().Done():
	case <-time.After(10 * ttl):
		t.Fatal("the holder goes on")
	}
}

func TestBrokenLeaseIsLostAtTheNextRenewal(t *testing.T) {
	for name, takers := range map[string]int{"it is not taken": 0, "another takes it": 1, "others take it in turn": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := storetest.NewMemory()
				held := acquire(t, s, store.LeaseConfig{})
				time.Sleep(ttl)
				began := time.Now()
				breakLease(t, s)
				for range takers {
					release(t, acquire(t, s, store.LeaseConfig{}))
				}
				left := readLease(t, s)
				untilLost(t, held)
				if took := time.Since(began); took > ttl*11/30 {
					t.Errorf("lost after %v, want it at the next renewal", took)
				}
				for _, err := range []error{held.Valid(), context.Cause(held.Context())} {
					if !errors.Is(err, store.ErrLeaseLost) || !strings.Contains(err.Error(), "fray state lease --break) broke it at 2000-01-01") {
						t.Errorf("got %v, want ErrLeaseLost, by whom and when", err)
					}
				}
				release(t, held)
				if l := readLease(t, s); l.Nonce != left.Nonce {
					t.Errorf("the one whose lease was broken wrote %+v", l)
				}
			})
		})
	}
}

// The record of an earlier break is not taken for one's own.
func TestLeaseTakenOverAfterAnEarlierBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		first := acquire(t, s, store.LeaseConfig{})
		breakLease(t, s)
		held := acquire(t, s, store.LeaseConfig{})
		l := readLease(t, s)
		l.Holder, l.User, l.Epoch = "00", "eve", 3
		data, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, store.LeaseKey, string(data))
		untilLost(t, held)
		if err := held.Valid(); err == nil || strings.Contains(err.Error(), "broke") || !strings.Contains(err.Error(), "eve") {
			t.Errorf("got %v, want that eve has taken it over", err)
		}
		release(t, held)
		release(t, first)
	})
}

// A holder that gives its lease back before it knows keeps the record.
func TestBrokenLeaseThatIsReleasedStaysBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		held := acquire(t, s, store.LeaseConfig{})
		broken := breakLease(t, s)
		release(t, held)
		if l := readLease(t, s); l.Nonce != broken.Nonce || l.Broken == nil {
			t.Errorf("got %+v, want it untouched", l)
		}
	})
}

func TestBreakWinsOverRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		held := acquire(t, s, store.LeaseConfig{})
		var tries atomic.Int64
		slow := &storetest.Faulty{Store: s, Before: func(op storetest.Op, _ string) error {
			if op == storetest.OpPut && tries.Add(1) <= 2 {
				time.Sleep(ttl / 2) // meanwhile it is renewed
			}
			return nil
		}}
		breakLease(t, slow)
		if got := tries.Load(); got != 3 {
			t.Errorf("got %d tries, want 3", got)
		}
		if l := readLease(t, s); !l.Released || l.Broken == nil {
			t.Errorf("got %+v, want it broken", l)
		}
		untilLost(t, held)
		release(t, held)
	})
}

func TestBreakWhoseReplyIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		held := acquire(t, s, store.LeaseConfig{})
		for _, reply := range []error{errDown, store.ErrConflict} {
			var writes atomic.Int64
			faulty := &storetest.Faulty{Store: s, After: func(op storetest.Op, _ string) error {
				if op == storetest.OpPut && writes.Add(1) == 1 {
					return reply
				}
				return nil
			}}
			if l := breakLease(t, faulty); l.Broken == nil || writes.Load() != 1 {
				t.Errorf("reply %v: got %+v after %d writes, want it broken by one", reply, l, writes.Load())
			}
			untilLost(t, held)
			release(t, held)
			held = acquire(t, s, store.LeaseConfig{})
		}
		release(t, held)
	})
}

// far is a store over a network.
type far struct{ store.Store }

func (far) WriteInterval() time.Duration { return time.Second }

func TestLeaseWaitersOfAFarStoreArePolite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		held := acquire(t, memory, store.LeaseConfig{})
		var looks []time.Time
		watched := &storetest.Faulty{Store: far{memory}, Before: func(op storetest.Op, key string) error {
			if op == storetest.OpGet && key == store.LeaseKey {
				looks = append(looks, time.Now())
			}
			return nil
		}}
		var refused *store.HeldError
		if _, err := store.Acquire(t.Context(), watched, store.LeaseConfig{Wait: time.Minute}); !errors.As(err, &refused) {
			t.Fatalf("got %v, want a HeldError", err)
		}
		gaps := map[time.Duration]bool{}
		for i, look := range looks[1 : len(looks)-1] { // the last one is when patience is over
			gap := look.Sub(looks[i])
			gaps[gap] = true
			if gap < 250*time.Millisecond || gap >= 750*time.Millisecond {
				t.Errorf("look %d: after %v, want it between a quarter and three quarters of a second", i, gap)
			}
		}
		if len(looks) < 80 || len(looks) > 160 || len(gaps) < len(looks)/2 {
			t.Errorf("got %d looks in a minute with %d different waits, want about 120 at random", len(looks), len(gaps))
		}
		release(t, held)
	})
}

// Processes that wait for a holder that died do not all try in the moment its lease
// lapses.
func TestLeaseWaitersOfAFarStoreTryApart(t *testing.T) {
	const waiters = 32
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		past := time.Now().Add(-ttl / 2)
		put(t, memory, store.LeaseKey, `{"holder":"00","epoch":1,"renewed_at":"`+past.Format(time.RFC3339Nano)+
			`","expires_at":"`+past.Add(ttl).Format(time.RFC3339Nano)+`"}`)
		expiry := past.Add(ttl)
		var at [waiters]time.Duration
		each := make(chan error, waiters)
		for i := range waiters {
			go func() {
				s := &storetest.Faulty{Store: far{memory}, Before: func(op storetest.Op, key string) error {
					if now := time.Now(); op == storetest.OpGet && key == store.LeaseKey && !now.Before(expiry) && at[i] == 0 {
						at[i] = max(1, now.Sub(expiry))
					}
					return nil
				}}
				held, err := store.Acquire(t.Context(), s, store.LeaseConfig{Wait: time.Hour})
				if err == nil {
					err = held.Release(t.Context())
				}
				each <- err
			}()
		}
		for range waiters {
			if err := <-each; err != nil {
				t.Error(err)
			}
		}
		moments := map[time.Duration]bool{}
		for _, after := range at {
			moments[after.Truncate(10*time.Millisecond)] = true
		}
		if len(moments) < waiters/2 {
			t.Errorf("%d waiters looked within %d hundredths of a second", waiters, len(moments))
		}
		if l := readLease(t, memory); l.Epoch != 1+waiters {
			t.Errorf("epoch: got %d, want %d: each had it once", l.Epoch, 1+waiters)
		}
	})
}
