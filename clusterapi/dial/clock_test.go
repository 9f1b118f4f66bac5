package dial_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/state/store/storetest"
)

// Tokens are made for the time of the controller that they go to, as its lease
// shows it, whatever the clock here says.
func TestTokensAreMadeByTheControllersClock(t *testing.T) {
	s := storetest.NewMemory()
	a, b := serve(t, "a"), serve(t, "b")
	var made atomic.Pointer[time.Time] // the last one
	f := dial.Follow(dial.FollowConfig{Store: s, Token: func(_ context.Context, now time.Time) (string, error) {
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

// A token that is refused because the controller's clock was set meanwhile is made
// once more, by what its lease says now; one that is refused again is refused.
func TestTokensAreMadeAnewOnceTheyAreRefused(t *testing.T) {
	s := storetest.NewMemory()
	a := serve(t, "a")
	put(t, s, a.lease())
	ahead := time.Now().Add(time.Hour)
	f := dial.Follow(dial.FollowConfig{Store: s, Token: func(_ context.Context, now time.Time) (string, error) {
		if now.After(ahead) {
			a.refuse.Store(nil)
		}
		return "any", nil
	}})
	t.Cleanup(func() { f.Close() })
	wantAnswer(t, f, "a")
	a.refuse.Store(status.New(codes.Unauthenticated, "it has expired"))
	before := a.calls.Load()
	if _, err := ask(within(t, 5*time.Minute), f); status.Code(err) != codes.Unauthenticated || a.calls.Load() != before+2 {
		t.Errorf("refused for good: %v after %d calls, want unauthenticated after 2", err, a.calls.Load()-before)
	}
	lease := a.lease()
	lease.RenewedAt, lease.Nonce = ahead.Add(time.Minute), "renewed"
	put(t, s, lease)
	wantAnswer(t, f, "a")
}
