package store_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// ledElsewhere is a store whose lease another machine holds, with a clock that
// is off.
func ledElsewhere(t *testing.T, skew time.Duration) (store.Store, *store.Held) {
	t.Helper()
	s := storetest.NewMemory()
	clock := func() time.Time { return time.Now().Add(skew) }
	return s, acquire(t, elsewhere{s}, store.LeaseConfig{TTL: 4 * time.Second, Now: clock})
}

// near reports whether a time is a leader's to within what a LeaderClock promises.
func near(got, want time.Time) bool {
	late := want.Sub(got)
	return late >= 0 && late < 4*time.Second
}

func TestLeaderClock(t *testing.T) {
	for _, skew := range []time.Duration{-10 * time.Minute, -2 * time.Second, 0, 10 * time.Minute} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, held := ledElsewhere(t, skew)
				c := store.NewLeaderClock(s)
				look := func(when string, leads bool) {
					t.Helper()
					got, err := c.Observe(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					want := time.Now().Add(skew)
					if skew.Abs() < 4*time.Second {
						want = time.Now() // such clocks are taken to agree
					}
					if got.Leads != leads || !near(got.Now, want) {
						t.Errorf("%s: got leads %v at %s, want %v at %s", when, got.Leads, got.Now, leads, want)
					}
				}
				began := time.Now()
				look("first", true)
				if took := time.Since(began); took > 4*time.Second {
					t.Errorf("the first look took %s, longer than the lease is valid", took)
				}
				time.Sleep(time.Hour)
				began = time.Now()
				look("after an hour", true)
				if took := time.Since(began); took > 0 && skew.Abs() > time.Minute {
					t.Errorf("a later look took %s, want none: the holder's clock was known", took)
				}
				dead := bytes.Clone(get(t, s, store.LeaseKey))
				release(t, held)
				look("released", false)
				if _, err := s.Put(t.Context(), store.LeaseKey, dead, store.Any); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				if _, err := c.Observe(t.Context()); err != nil { // sees the dead one's for the first time
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				look("dead", false)
			})
		})
	}
}

// A look at the lease of a dead holder ends when that has lapsed by any clock.
func TestLeaderClockOfTheDead(t *testing.T) {
	for _, skew := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, held := ledElsewhere(t, skew)
				dead := bytes.Clone(get(t, s, store.LeaseKey))
				release(t, held)
				if _, err := s.Put(t.Context(), store.LeaseKey, dead, store.Any); err != nil {
					t.Fatal(err)
				}
				c := store.NewLeaderClock(s)
				began := time.Now()
				got, err := c.Observe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < 4*time.Second || took > 5*time.Second {
					t.Errorf("the look took %s, want the lease's 4 s", took)
				}
				want := time.Now().Add(max(skew, 0)) // never behind what the lease says
				if got.Leads || !near(got.Now, want.Add(time.Second)) {
					t.Errorf("got leads %v at %s, want false at about %s", got.Leads, got.Now, want)
				}
			})
		})
	}
}

// away is a store that cannot be reached.
type away struct{ store.Store }

var errAway = errors.New("no route to host")

func (away) Get(context.Context, string) (store.Object, error) { return store.Object{}, errAway }

// Without a lease the time is this machine's, and without the store an error
// comes with it.
func TestLeaderClockWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := store.NewLeaderClock(storetest.NewMemory()).Observe(t.Context())
		if err != nil || got.Leads || !got.Now.Equal(time.Now()) {
			t.Errorf("got %+v, %v, want no leader and this machine's time", got, err)
		}
		c := store.NewLeaderClock(away{storetest.NewMemory()})
		if got, err := c.Observe(t.Context()); !errors.Is(err, errAway) || !got.Now.Equal(time.Now()) {
			t.Errorf("got %+v, %v, want %v and this machine's time", got, err, errAway)
		}
		if now := c.Now(t.Context()); !now.Equal(time.Now()) {
			t.Errorf("got %s, want %s", now, time.Now())
		}
	})
}

// Now does not read the lease for each who asks.
func TestLeaderClockRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, held := ledElsewhere(t, 10*time.Minute)
		c := store.NewLeaderClock(s)
		for range 10 {
			began := time.Now()
			if got := c.Now(t.Context()); !near(got, time.Now().Add(10*time.Minute)) {
				t.Errorf("got %s, want about %s", got, time.Now().Add(10*time.Minute))
			}
			if time.Since(began) > 4*time.Second {
				t.Errorf("that took %s", time.Since(began))
			}
			time.Sleep(2 * time.Second)
		}
		release(t, held)
	})
}
