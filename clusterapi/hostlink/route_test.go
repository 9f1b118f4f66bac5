package hostlink

import (
	"testing"
	"time"
)

// A client waits for a relay that looks for a controller for longer after each try by itself, and
// clients do not give up at the same moment.
func TestWaitForARelay(t *testing.T) {
	first := map[time.Duration]bool{}
	for range 20 {
		var w relayWait
		var waits []time.Duration
		began := time.Unix(0, 0)
		now := began
		for len(waits) < 6 {
			if w.over(now) {
				waits, began = append(waits, now.Sub(began)), now
			}
			now = now.Add(100 * time.Millisecond)
		}
		first[waits[0]] = true
		if waits[0] < waitPatience || waits[0] > 2*waitPatience+time.Second {
			t.Errorf("the first wait was %s, want %s to twice that", waits[0], waitPatience)
		}
		for i, wait := range waits[1:] {
			if want := min(2*waits[i], longestWait); wait < want-time.Second || wait > want+time.Second {
				t.Errorf("after %s it waited %s, want %s", waits[i], wait, want)
			}
		}
	}
	if len(first) == 1 {
		t.Error("all gave up at the same moment")
	}
}
