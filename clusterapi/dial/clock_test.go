package dial_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/state/store/storetest"
)

// Tokens are made for the time of the controller that they go to, as its lease
// shows it, whatever the clock here says.
func TestTokensAreMadeByTheControllersClock(t *testing.T) {
	s := storetest.NewMemory()
	a, b := serve(t, "a"), serve(t, "b")
	var made atomic.Pointer[time.Time] // the last one
	f := dial.Follow(dial.FollowConfig{Store: s, Token: func(now time.Time) (string, error) {
		made.Store(&now)
		return "any", nil
	}})
	t.Cleanup(func() { f.Close() })
	for _, next := range []struct {
		who  *controller
		skew time.Duration
	}{{a, 10 * time.Minute}, {b, -10 * time.Minute}} {
		lease := next.who.lease()
		lease.RenewedAt = lease.RenewedAt.Add(next.skew)
		put(t, s, lease)
		wantAnswer(t, f, next.who.name)
		if got := *made.Load(); time.Since(got.Add(-next.skew)).Abs() > 5*time.Minute {
			t.Errorf("the token for %s was made for %s, want about %s from now", next.who.name, got, next.skew)
		}
		next.who.server.Stop()
	}
}
