package store_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/state/checksum"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// elsewhere is a store as another machine writes to it: its leases name another boot.
type elsewhere struct{ store.Store }

func (e elsewhere) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	if key == store.LeaseKey {
		object, _ := checksum.Cut(data)
		changed, err := checksum.Append(bytes.Replace(object, []byte(`"boot_id": "`), []byte(`"boot_id": "elsewhere-`), 1))
		if err != nil {
			return 0, err
		}
		data = changed
	}
	return e.Store.Put(ctx, key, data, want)
}

// A holder that renews its lease keeps it, however wrong the clock of another
// machine is; and one that is dead is replaced as soon as with right clocks.
func TestClocksOfMachinesMayDiffer(t *testing.T) {
	for _, skew := range []time.Duration{-10 * time.Minute, 0, 10 * time.Minute} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := storetest.NewMemory()
				held := acquire(t, elsewhere{s}, store.LeaseConfig{TTL: 4 * time.Second})
				skewed := func() time.Time { return time.Now().Add(skew) }
				_, err := store.Acquire(t.Context(), s, store.LeaseConfig{Now: skewed, Wait: time.Minute, TTL: 4 * time.Second})
				if _, refused := errors.AsType[*store.HeldError](err); !refused {
					t.Errorf("got %v beside a holder that renews, want a HeldError", err)
				}
				if err := held.Valid(); err != nil {
					t.Errorf("the holder lost its lease: %v", err)
				}
				dead := bytes.Clone(get(t, s, store.LeaseKey))
				release(t, held)
				if _, err := s.Put(t.Context(), store.LeaseKey, dead, store.Any); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				next := acquire(t, s, store.LeaseConfig{Now: skewed, Wait: time.Minute, TTL: 4 * time.Second})
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("taking over from a dead holder took %s", took)
				}
				release(t, next)
			})
		})
	}
}

// A lease of a holder that died long ago is taken over without a wait.
func TestLeaseThatLapsedLongAgoIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		held := acquire(t, elsewhere{s}, store.LeaseConfig{})
		dead := bytes.Clone(get(t, s, store.LeaseKey))
		release(t, held)
		if _, err := s.Put(t.Context(), store.LeaseKey, dead, store.Any); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		began := time.Now()
		release(t, acquire(t, s, store.LeaseConfig{}))
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %s", took)
		}
	})
}

func get(t *testing.T, s store.Store, key string) []byte {
	t.Helper()
	object, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return object.Data
}
