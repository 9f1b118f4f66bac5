package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/store"
)

// The lease's timers are tested with a fake clock beside it; these tests see
// that it works on a store with real replies, and so keep to what is quick.
func runLease(t *testing.T, open func(t *testing.T) store.Store) {
	tests := []struct {
		name string
		run  func(*testing.T, store.Store)
	}{
		{"one holds it, a second learns who", testLeaseHeld},
		{"a released lease is taken over", testLeaseReleased},
		{"an expired lease is taken over", testLeaseExpired},
		{"one of many gets it", testLeaseRace},
		{"losing it ends the context", testLeaseLost},
		{"a lost reply is settled by the nonce", testLeaseLostReply},
		{"a holder that yields is asked to", testLeaseHandover},
		{"a broken lease is lost, and its loss names who broke it", testLeaseBroken},
		{"a lease that is not held cannot be broken", testLeaseNotLive},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

func acquire(t *testing.T, s store.Store, cfg store.LeaseConfig) *store.Held {
	t.Helper()
	held, err := store.Acquire(t.Context(), s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(t, held) })
	return held
}

func release(t *testing.T, held *store.Held) {
	t.Helper()
	// The test's own context has ended when this runs as a cleanup.
	if err := held.Release(contextOf(t)); err != nil {
		t.Errorf("release: %v", err)
	}
}

func testLeaseHeld(t *testing.T, s store.Store) {
	if _, err := store.ReadLease(t.Context(), s); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("read of no lease: got %v, want ErrNotFound", err)
	}
	held := acquire(t, s, store.LeaseConfig{Command: "fray apply", MinEpoch: 7})
	if held.Epoch() != 8 {
		t.Errorf("epoch: got %d, want 8", held.Epoch())
	}
	if err := held.Valid(); err != nil {
		t.Errorf("valid: %v", err)
	}
	_, err := store.Acquire(t.Context(), s, store.LeaseConfig{})
	var rejected *store.HeldError
	if !errors.As(err, &rejected) {
		t.Fatalf("second holder: got %v, want a HeldError", err)
	}
	lease, err := store.ReadLease(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if lease.Holder != rejected.Lease.Holder || lease.Epoch != 8 || lease.Command != "fray apply" {
		t.Errorf("lease: got %+v", lease)
	}
	for _, want := range []string{lease.User + "@" + lease.Host, "fray apply", "pid "} {
		if !strings.Contains(rejected.Error(), want) {
			t.Errorf("%q does not name %q", rejected, want)
		}
	}
}

func testLeaseReleased(t *testing.T, s store.Store) {
	for want := uint64(1); want <= 3; want++ {
		held := acquire(t, s, store.LeaseConfig{})
		if held.Epoch() != want {
			t.Errorf("epoch: got %d, want %d", held.Epoch(), want)
		}
		for range 2 { // again does nothing
			release(t, held)
		}
		if held.Context().Err() == nil || held.Valid() == nil {
			t.Error("a released lease is still valid")
		}
	}
	lease, err := store.ReadLease(t.Context(), s)
	if err != nil || !lease.Released || lease.Epoch != 3 {
		t.Errorf("lease: got %+v, %v, want epoch 3, released", lease, err)
	}
}

func testLeaseExpired(t *testing.T, s store.Store) {
	past := func() time.Time { return time.Now().Add(-time.Minute) }
	old := acquire(t, s, store.LeaseConfig{Now: past, Command: "of yesterday"})
	next := acquire(t, s, store.LeaseConfig{})
	if next.Epoch() != old.Epoch()+1 {
		t.Errorf("epoch: got %d after %d", next.Epoch(), old.Epoch())
	}
}

func testLeaseRace(t *testing.T, s store.Store) {
	var mu sync.Mutex
	var won []*store.Held
	each(t, 16, func(int) error {
		held, err := store.Acquire(t.Context(), s, store.LeaseConfig{})
		if _, rejected := errors.AsType[*store.HeldError](err); rejected {
			return nil
		}
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			won = append(won, held)
		}
		return err
	})
	if len(won) != 1 {
		t.Errorf("%d hold the lease, want 1", len(won))
	}
	for _, held := range won {
		release(t, held)
	}
}

func testLeaseLost(t *testing.T, s store.Store) {
	held := acquire(t, s, store.LeaseConfig{TTL: 3 * time.Second})
	put(t, s, store.LeaseKey, `{"holder":"00","epoch":9,"user":"eve","host":"elsewhere","expires_at":"2999-01-01T00:00:00Z"}`, store.Any)
	select {
	case <-held.Context().Done():
	case <-time.After(time.Minute):
		t.Fatal("the context goes on")
	}
	for _, err := range []error{held.Valid(), context.Cause(held.Context())} {
		if !errors.Is(err, store.ErrLeaseLost) || !strings.Contains(err.Error(), "eve@elsewhere") {
			t.Errorf("got %v, want ErrLeaseLost that names eve@elsewhere", err)
		}
	}
	release(t, held)
	if lease, err := store.ReadLease(t.Context(), s); err != nil || lease.Epoch != 9 || lease.Released {
		t.Errorf("the other's lease: got %+v, %v, want it untouched", lease, err)
	}
}

func testLeaseLostReply(t *testing.T, s store.Store) {
	lost := errors.New("connection reset")
	for _, reply := range []error{lost, store.ErrConflict} {
		fail := true
		faulty := &Faulty{Store: s, After: func(op Op, key string) error {
			if op == OpPut && key == store.LeaseKey && fail {
				fail = false
				return reply
			}
			return nil
		}}
		held := acquire(t, faulty, store.LeaseConfig{})
		if fail {
			t.Fatal("no reply was lost")
		}
		fail = true
		release(t, held)
		if fail {
			t.Fatal("no reply was lost")
		}
		if lease, err := store.ReadLease(t.Context(), s); err != nil || !lease.Released {
			t.Errorf("lease: got %+v, %v, want it released", lease, err)
		}
	}
}

func testLeaseHandover(t *testing.T, s store.Store) {
	watch := acquire(t, s, store.LeaseConfig{Command: "fray watch", Yields: true})
	if pending, err := store.PendingHandover(t.Context(), s); err != nil || pending {
		t.Fatalf("pending: got %v, %v before anybody asked", pending, err)
	}
	each(t, 2, func(worker int) error {
		if worker == 0 {
			held, err := store.Acquire(t.Context(), s, store.LeaseConfig{Command: "fray apply"})
			if err == nil {
				release(t, held)
			}
			return err
		}
		err := eventually("the handover is asked for", func() bool {
			pending, err := store.PendingHandover(t.Context(), s)
			return err == nil && pending
		})
		if err != nil {
			return err
		}
		if err := watch.Release(t.Context()); err != nil {
			return err
		}
		// It comes back once the other is done, and not before.
		again, err := store.Acquire(t.Context(), s, store.LeaseConfig{Yields: true, Wait: time.Minute})
		if err != nil {
			return err
		}
		release(t, again)
		if again.Epoch() != 3 {
			t.Errorf("epoch: got %d, want 3: the other's was 2", again.Epoch())
		}
		return nil
	})
	if pending, err := store.PendingHandover(t.Context(), s); err != nil || pending {
		t.Errorf("pending: got %v, %v after the handover", pending, err)
	}
}

func testLeaseBroken(t *testing.T, s store.Store) {
	held := acquire(t, s, store.LeaseConfig{TTL: 3 * time.Second, Command: "fray apply"})
	seen, err := store.ReadLease(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	broken, err := store.Break(t.Context(), s, store.LeaseConfig{Command: "fray state lease --break"}, seen)
	if err != nil {
		t.Fatal(err)
	}
	b := broken.Broken
	if b == nil || b.Epoch != 1 || b.At.Before(began.Add(-time.Second)) || !strings.Contains(b.By, "state lease --break") ||
		!strings.Contains(b.Holder, "fray apply") {
		t.Errorf("got %+v, want who broke epoch 1 of fray apply, and when", b)
	}
	next := acquire(t, s, store.LeaseConfig{Command: "fray apply again"})
	if next.Epoch() != 2 {
		t.Errorf("epoch: got %d, want 2", next.Epoch())
	}
	select {
	case <-held.Context().Done():
	case <-time.After(time.Minute):
		t.Fatal("the context of the broken holder goes on")
	}
	for _, err := range []error{held.Valid(), context.Cause(held.Context())} {
		if !errors.Is(err, store.ErrLeaseLost) || !strings.Contains(err.Error(), b.By) {
			t.Errorf("got %v, want ErrLeaseLost that names %s", err, b.By)
		}
	}
	release(t, held) // changes nothing
	release(t, next)
	release(t, acquire(t, s, store.LeaseConfig{}))
	l, err := store.ReadLease(t.Context(), s)
	if err != nil || l.Epoch != 3 || l.Broken == nil || *l.Broken != *b {
		t.Errorf("two leases later: got %+v, %v, want epoch 3 and the same record", l, err)
	}
}

func testLeaseNotLive(t *testing.T, s store.Store) {
	rejected := func(name string, seen store.Lease, want error) {
		t.Helper()
		if l, err := store.Break(t.Context(), s, store.LeaseConfig{}, seen); !errors.Is(err, want) {
			t.Errorf("%s: got %+v, %v, want %v", name, l, err, want)
		}
	}
	rejected("never taken", store.Lease{}, store.ErrNotLive)
	past := func() time.Time { return time.Now().Add(-time.Minute) }
	old := acquire(t, s, store.LeaseConfig{Now: past})
	lapsed, err := store.ReadLease(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	rejected("lapsed", lapsed, store.ErrNotLive)
	next := acquire(t, s, store.LeaseConfig{})
	rejected("another's by now", lapsed, store.ErrConflict)
	if err := next.Valid(); err != nil {
		t.Errorf("after the rejections: %v", err)
	}
	seen, err := store.ReadLease(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	release(t, next)
	rejected("given back", seen, store.ErrNotLive)
	release(t, old)
	if l, err := store.ReadLease(t.Context(), s); err != nil || l.Broken != nil || l.Epoch != 2 {
		t.Errorf("got %+v, %v, want epoch 2, never broken", l, err)
	}
}
