package live

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/clusterapi/hostlink"
	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// rig is host 3 of slice a, which has candidates 0 to 2.
type rig struct {
	t     *testing.T
	store *storetest.Memory
	down  string // the object that cannot be read
	reads int    // of the lease
	key   ed25519.PrivateKey
	link  *Link
	*relays
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, store: storetest.NewMemory(), key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}
	r.link = Open(Config{
		Store: &storetest.Faulty{Store: r.store, Before: func(_ storetest.Op, key string) error {
			if key == store.LeaseKey {
				r.reads++
			}
			if key == r.down {
				return errDown
			}
			return nil
		}},
		Identity: Identity{Slice: "a", Host: 3, Key: r.key}, Stack: func() string { return "" }, Log: slog.New(slog.DiscardHandler),
	})
	r.relays = newRelays(r.link)
	return r
}

func (r *rig) put(key string, data []byte, err error) {
	r.t.Helper()
	if err == nil {
		_, err = r.store.Put(r.t.Context(), key, data, store.Any)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// lead writes a lease; noKey is one of an older controller.
func (r *rig) lead(relayKey []byte) {
	data, err := json.Marshal(store.Lease{
		Holder: "h", Epoch: 1, Stack: "abc", ControllerAddress: "10.0.0.1:1", ControllerFingerprint: strings.Repeat("ab", 32), RelayKey: relayKey,
		RenewedAt: time.Now().Add(-time.Hour), ExpiresAt: time.Now(), // its clock is late
	})
	r.put(store.LeaseKey, data, err)
}

// report writes the report of a host that serves, under a certificate.
func (r *rig) report(host, certificate int) {
	data, err := store.Encode(state.HostReport{
		Slice: "a", Host: host, API: "127.0.0.1:1", Fingerprint: fmt.Sprintf("%064x", certificate),
		SigningKey: r.key.Public().(ed25519.PublicKey),
	})
	r.put(store.HostKey("a", host), data, err)
}

// want takes the route through a candidate, or wants that there is none.
func (r *rig) want(nth int, certificate int) *hostlink.Route {
	r.t.Helper()
	got, err := r.Route(r.t.Context(), nth)
	if err != nil {
		r.t.Fatalf("the route through candidate %d: %v", nth, err)
	}
	if (got != nil) != (certificate > 0) {
		r.t.Fatalf("the route through candidate %d is %v, want one: %t", nth, got, certificate > 0)
	}
	if got == nil {
		return nil
	}
	r.t.Cleanup(func() { _ = got.Close() })
	key, err := got.Leader(r.t.Context())
	if known := r.reports[nth].Fingerprint; known != fmt.Sprintf("%064x", certificate) || string(key) != "key" || err != nil {
		r.t.Errorf("the route goes to certificate %s and is sealed for %q, %v", known, key, err)
	}
	return got
}

// Candidates are found by the lease and their reports, which are read again where a known one
// led nowhere.
func TestRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.want(0, 0) // no controller leads
		r.lead(nil)
		time.Sleep(leaseFresh)
		r.want(0, 0)
		if got := r.Again(); got < keylessHold {
			t.Errorf("where the controller takes no relays it is asked again after %s", got)
		}
		r.lead([]byte("key"))
		time.Sleep(leaseFresh)
		r.want(0, 0) // has not reported
		r.report(0, 1)
		r.report(1, 1)
		r.want(0, 0) // is held
		r.want(1, 1).Ended(hostlink.Served)
		time.Sleep(firstHold)
		r.want(0, 1).Ended(hostlink.Served)
		r.report(0, 2)
		r.want(0, 1).Ended(hostlink.Failed) // it has started anew
		r.want(0, 2).Ended(hostlink.Failed)
		r.want(0, 0)
		r.want(1, 1).Ended(hostlink.Refused)
		r.want(1, 0)
		if got := r.Again(); got < firstHold || got > 2*firstHold {
			t.Errorf("candidates are tried again after %s", got)
		}
	})
}

var errDown = errors.New("the store is down")

// A store that does not answer says nothing of a candidate, which is not held for it.
func TestRoutesWhileTheStoreIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.lead([]byte("key"))
		r.report(0, 1)
		for _, key := range []string{store.LeaseKey, store.HostKey("a", 0)} {
			r.down = key
			if got, err := r.Route(t.Context(), 0); got != nil || !errors.Is(err, errDown) {
				t.Errorf("while %s cannot be read the route is %v, %v; want that it is not known", key, got, err)
			}
		}
		r.down = ""
		r.want(0, 1).Ended(hostlink.Served)
	})
}

// The lease is read once for a route that leads to a controller, after the relay has confirmed that
// it has a stream, and again after one that led nowhere.
func TestReadsOfTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.lead([]byte("key"))
		r.report(0, 1)
		for _, step := range []struct {
			ended hostlink.Outcome
			reads int // before the next route and for it
		}{{hostlink.Served, 2}, {hostlink.Served, 1}, {hostlink.Silent, 1}, {hostlink.Served, 2}} {
			r.reads = 0
			r.want(0, 1).Ended(step.ended)
			if r.reads != step.reads {
				t.Errorf("a route that ended as %d took %d reads of the lease, want %d", step.ended, r.reads, step.reads)
			}
			time.Sleep(time.Minute)
		}
	})
}

// The token of a relayed host is by the controller's clock, and for relays alone.
func TestVouch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		if _, err := r.link.vouch(r.link.cfg.Identity, "k"); err == nil {
			t.Error("a host without a lease vouches")
		}
		r.lead([]byte("key"))
		r.report(3, 1)
		if _, err := r.leader(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		text, err := r.link.vouch(r.link.cfg.Identity, "k")
		if err != nil {
			t.Fatal(err)
		}
		verifier, err := token.NewVerifier("abc", keys.NewReader(r.store, nil))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now().Add(-time.Hour)
		got, err := verifier.Verify(t.Context(), text, now)
		if err != nil || got.Subject != token.SubjectRelayed || got.Key != "k" || got.Signer.Host != 3 || got.Expires.Sub(now) > relayedLife {
			t.Errorf("the token says %+v, %v", got, err)
		}
		if got := r.link.stack(); got != "abc" {
			t.Errorf("the stack is %q, want that of the lease", got)
		}
	})
}
