package backoff

import (
	"testing"
	"time"
)

func TestAfter(t *testing.T) {
	for n, want := range map[int]time.Duration{1: firstWait, 2: 2 * firstWait, 6: 32 * firstWait, 7: longestWait, 1000: longestWait} {
		for range 100 {
			if got := After(n); got < want/2 || got > want {
				t.Errorf("after %d failures: %s, want between half of and %s", n, got, want)
			}
		}
	}
}
