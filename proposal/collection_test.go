package proposal

import (
	"runtime/debug"
	"testing"
)

// gcPercent is the present percentage.
func gcPercent() int {
	is := debug.SetGCPercent(usualGC)
	debug.SetGCPercent(is)
	return is
}

// A Collection sets the percentage and restores it, and leaves one alone that a user has set.
func TestCollection(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(usualGC))
	c := BeginCollection()
	if is := gcPercent(); is == usualGC {
		t.Errorf("the heap is collected at %d %%, want another pace", is)
	}
	c.End()
	c.adjust() // one that comes late
	if is := gcPercent(); is != usualGC {
		t.Errorf("afterwards the heap is collected at %d %%, want %d", is, usualGC)
	}
	debug.SetGCPercent(50)
	c = BeginCollection()
	during := gcPercent()
	c.End()
	if after := gcPercent(); during != 50 || after != 50 {
		t.Errorf("the user's 50 %% are %d during and %d after a plan", during, after)
	}
	for live, want := range map[uint64]int{0: smallGC, garbageRoom / 10: smallGC, garbageRoom: 100, 10 * garbageRoom: largeGC} {
		if got := percentFor(live, 0); got != want {
			t.Errorf("%d bytes in use: got %d %%, want %d", live, got, want)
		}
		const jobs = 2 * garbageRoom / jobRoom
		if got := percentFor(2*live, jobs); got != want {
			t.Errorf("twice %d bytes in use by %d jobs: got %d %%, want %d", live, jobs, got, want)
		}
	}
}
