package keys

import (
	"crypto/ed25519"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// A controller takes over without a look at the reports of hosts whose keys the one before has
// left; other keys, and all of them after a while, are looked up.
func TestRosterOfTheControllerBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, gets := storetest.NewMemory(), 0
		counted := &storetest.Faulty{Store: s, Before: func(op storetest.Op, _ string) error {
			if op == storetest.OpGet {
				gets++
			}
			return nil
		}}
		ids, reports := map[int]token.ID{}, []*state.HostReport{}
		for n := range fewHosts + 1 {
			public, private, err := ed25519.GenerateKey(nil)
			if err != nil {
				t.Fatal(err)
			}
			signer, err := token.NewSigner(private, "abc", token.ID{Role: token.RoleHost, Slice: "a", Host: n})
			if err != nil {
				t.Fatal(err)
			}
			ids[n] = signer.ID()
			if n < fewHosts {
				reports = append(reports, &state.HostReport{Slice: "a", Host: n, SigningKey: public})
			}
		}
		go KeepRoster(t.Context(), s, func() Reports {
			return func(yield func(*state.HostReport) bool) {
				for _, r := range reports {
					if !yield(r) {
						return
					}
				}
			}
		})
		time.Sleep(rosterPace + time.Second)
		first, err := s.Get(t.Context(), RosterKey)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * rosterPace)
		if again, err := s.Get(t.Context(), RosterKey); err != nil || again.Generation != first.Generation {
			t.Errorf("a roster that did not change was written again: %v, %v", again.Generation, err)
		}

		r := NewReader(counted, nil)
		roster, err := ReadRoster(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		r.Begin(roster)
		for n := range fewHosts {
			if key, err := r.Key(t.Context(), ids[n]); err != nil || token.Sum(key.Public) != ids[n].Sum {
				t.Errorf("the key of host %d is not known: %v", n, err)
			}
		}
		if gets != 0 {
			t.Errorf("%d keys were looked up, want none", gets)
		}
		other := ids[0]
		other.Sum = ids[fewHosts].Sum // a key that is not the host's
		for _, id := range []token.ID{ids[fewHosts], other} {
			if _, err := r.Key(t.Context(), id); !errors.Is(err, token.ErrUnknownKey) {
				t.Errorf("the key of %+v is %v, want none", id, err)
			}
		}
		time.Sleep(rosterLife)
		if _, err := r.Key(t.Context(), ids[0]); !errors.Is(err, token.ErrUnknownKey) || gets != 3 {
			t.Errorf("a key that is not in the store counts after %s: %v, %d look-ups", rosterLife, err, gets)
		}
	})
}

// Without a roster there is none.
func TestNoRoster(t *testing.T) {
	s := storetest.NewMemory()
	if r, err := ReadRoster(t.Context(), s); r != nil || err != nil {
		t.Errorf("got %v, %v", r, err)
	}
	if _, err := s.Put(t.Context(), RosterKey, []byte("{"), store.Any); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRoster(t.Context(), s); err == nil {
		t.Error("a damaged roster is read")
	}
}
