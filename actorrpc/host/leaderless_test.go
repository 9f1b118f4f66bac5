package host

import (
	"context"
	"testing"
	"time"
)

// TestLeaderlessServerIsReady: a server without a controller is ready, and
// registers once there is one.
func TestLeaderlessServerIsReady(t *testing.T) {
	d := newDirectory(t)
	d.leaderless = true
	s := started(t, d.member(t), map[string]any{"counter": newLesson()}, Options{})
	if !s.ready.Load() {
		t.Error("got a server that is not ready, want it ready though no controller leads")
	}
	connect(t, s, "a").wants(2, "counter", "increment", 2)
	if all := d.registered(); len(all) != 0 {
		t.Fatalf("got %v registered, want nothing so far", all)
	}
	d.mu.Lock()
	d.leaderless = false
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(d.registered()) == 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("waited a minute in vain for the name to be registered")
		}
	}
	if got := d.registered()[0].GetName(); got != "counter" {
		t.Errorf("registered: got %q, want counter", got)
	}
}
