package status

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// TestStatusDoesNotWaitForALeader: what is known of the leader comes in time, and what
// takes longer to know comes with a later observation.
func TestStatusDoesNotWaitForALeader(t *testing.T) {
	const valid = 15 * time.Second
	type look struct {
		after time.Duration // since the last one
		renew bool          // right after that
		took  time.Duration
		want  string
	}
	for _, test := range []struct {
		name    string
		age     time.Duration // of the last renewal, by the clock here
		serves  bool
		answers bool // else it hangs
		looks   []look
	}{
		{"a lapsed apply elsewhere", time.Minute, false, false, []look{
			{0, false, answerPatience, "unsure"}, {time.Second, false, answerAgain, "unsure"}, {valid, false, 0, "gone"},
		}},
		{"a lapsed controller elsewhere that is dead", time.Minute, true, false, []look{
			{0, false, answerPatience, "unsure silent"}, {valid, false, answerAgain, "silent"},
		}},
		{"one whose clock is behind", time.Minute, true, true, []look{{0, false, answerAgain, "led"}}},
		{"one that hangs, and renews in the end", time.Minute, true, false, []look{
			{0, false, answerPatience, "unsure silent"}, {2 * time.Second, true, 0, "led"},
		}},
		{"one out of reach that renews its lease", time.Second, true, false, []look{{0, false, 0, "led"}, {time.Second, false, 0, "led"}}},
		{"one that has just stopped renewing", valid - time.Second, true, false, []look{{0, false, answerPatience, "led silent"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := storetest.NewMemory()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				at := time.Now().Add(-test.age)
				lease := store.Lease{Holder: "h", Host: "elsewhere", Command: "fray watch", RenewedAt: at, ExpiresAt: at.Add(valid), Nonce: "0"}
				if test.serves {
					lease.ControllerAddress = "10.0.0.1:1"
				}
				putLease(t, s, lease)
				a := &attention{store: s, clock: store.NewLeaderClock(s), patience: answerPatience, ask: func(ctx context.Context, _ *store.Lease) bool {
					if !test.answers {
						<-ctx.Done()
					}
					return test.answers
				}}
				for i, l := range test.looks {
					if l.renew {
						lease.RenewedAt, lease.ExpiresAt, lease.Nonce = time.Now(), time.Now().Add(valid), fmt.Sprint(i)
						putLease(t, s, lease)
					}
					time.Sleep(l.after)
					began := time.Now()
					got, err := a.observe(ctx)
					if err != nil || knownOf(got) != l.want || time.Since(began) > l.took {
						t.Errorf("look %d: %q after %s, %v; want %q after %s at most", i, knownOf(got), time.Since(began), err, l.want, l.took)
					}
				}
			})
		})
	}
}

// knownOf is what is known, in words.
func knownOf(p presence) string {
	switch {
	case p.unsure && p.silent:
		return "unsure silent"
	case p.unsure:
		return "unsure"
	case p.led && p.silent:
		return "led silent"
	case p.led:
		return "led"
	case p.silent:
		return "silent"
	}
	return "gone"
}

func putLease(t *testing.T, s store.Store, l store.Lease) {
	t.Helper()
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), store.LeaseKey, data, store.Any); err != nil {
		t.Fatal(err)
	}
}
