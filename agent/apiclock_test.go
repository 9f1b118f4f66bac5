package agent

import (
	"encoding/json"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/state/store"
)

// A host judges tokens by the clock of the leader, whatever its own shows: one
// that leads by other clocks makes the host's wrong by as much.
func TestTokensAreJudgedByTheLeadersClock(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.runs(job("exec sleep 1000"))
			publishKeys(t, r.store, time.Now().Add(skew))
			ledBy(t, r.store, skew)
			for _, test := range []struct {
				name string
				left time.Duration // by the leader's clock
				code codes.Code
			}{
				{"fresh", 9 * time.Minute, codes.OK},
				{"expired a minute ago", -time.Minute, codes.Unauthenticated},
				{"to the end of its life", 3 * time.Minute, codes.OK},
			} {
				claims := userClaims()
				claims.Expires = time.Now().Add(skew + test.left)
				_, err := execute(t.Context(), r.hostClient(minted(t, claims)), sh("true"), "")
				if status.Code(err) != test.code {
					t.Errorf("a token that is %s: exec says %v, want %s", test.name, err, test.code)
				}
			}
		})
	}
}

// ledBy keeps up a lease of another machine whose clock is off.
func ledBy(t *testing.T, s store.Store, skew time.Duration) {
	t.Helper()
	lease := store.Lease{Holder: "h", Epoch: 1, Host: "elsewhere", BootID: "another"}
	renew := func() error {
		now := time.Now().Add(skew)
		// Long, for a busy machine, and shorter than the clocks are apart: within
		// that they pass for the same.
		lease.RenewedAt, lease.ExpiresAt, lease.Nonce = now, now.Add(3*time.Minute), now.String()
		data, err := json.Marshal(lease)
		if err == nil {
			_, err = s.Put(t.Context(), store.LeaseKey, data, store.Any)
		}
		return err
	}
	if err := renew(); err != nil {
		t.Fatal(err)
	}
	ticker := time.NewTicker(time.Second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ticker.C:
			case <-t.Context().Done():
				return
			}
			if err := renew(); err != nil && t.Context().Err() == nil {
				t.Errorf("renew the lease: %v", err)
			}
		}
	}()
	t.Cleanup(func() {
		ticker.Stop()
		<-done
	})
}
