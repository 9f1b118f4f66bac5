package soak

import (
	"slices"
	"testing"
	"time"
)

// shrink shortens the tape of a run that broke a rule, for as long as it is
// given, so that the same rule is still broken. Every number of the tape stands
// for one step and can be left out alone.
func shrink(t *testing.T, r *run, within time.Duration) *run {
	t.Helper()
	deadline := time.Now().Add(within)
	best := shorter(t, r, r.tape) // now with its trace
	if at := r.violated().step; at < len(r.tape) {
		best = shorter(t, best, r.tape[:at])
	}
	for size := len(best.tape) / 2; size > 0; size /= 2 {
		for from := 0; from < len(best.tape) && time.Now().Before(deadline); {
			without := slices.Delete(slices.Clone(best.tape), from, min(from+size, len(best.tape)))
			if next := shorter(t, best, without); next != best {
				best = next
			} else {
				from += size
			}
		}
	}
	return best
}

// shorter is the run with another tape if it breaks the same rule, else best.
func shorter(t *testing.T, best *run, tape []uint64) *run {
	t.Helper()
	r := play(t, best.seed, tape, true)
	if v := r.violated(); v != nil && v.rule == best.violated().rule {
		return r
	}
	return best
}
