// Package backoff has the waits between attempts that failed. It leaves out the waiting, which is for
// package sleep. Start with [After].
package backoff

import (
	"math/rand/v2"
	"time"
)

// Waits between attempts double from the first to the longest.
const (
	firstWait   = 10 * time.Millisecond
	longestWait = 500 * time.Millisecond
)

// After is the wait after so many failures in a row, from 1 on, with jitter so
// that many clients do not come at once.
func After(failures int) time.Duration {
	wait := longestWait
	if n := failures - 1; n < 6 {
		wait = min(firstWait<<max(n, 0), longestWait)
	}
	return wait/2 + rand.N(wait/2)
}
