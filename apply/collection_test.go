package apply

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestCollectLate: a small heap is collected less often, a large one as usual, and one for
// which a user has set the pace as set.
func TestCollectLate(t *testing.T) {
	percent := func() int {
		is := debug.SetGCPercent(usualGC)
		debug.SetGCPercent(is)
		return is
	}
	defer debug.SetGCPercent(percent())
	debug.SetGCPercent(usualGC)
	runtime.GC()
	restore := CollectLate()
	if is := percent(); is <= usualGC {
		t.Errorf("a small heap is collected at %d %%, want more than %d", is, usualGC)
	}
	if restore(); percent() != usualGC {
		t.Errorf("it is collected at %d %% afterwards, want %d", percent(), usualGC)
	}
	debug.SetGCPercent(50)
	restore = CollectLate()
	restore()
	if is := percent(); is != 50 {
		t.Errorf("the user's 50 %% became %d", is)
	}
	debug.SetGCPercent(usualGC)
	large := make([]byte, 2*heapFloor)
	runtime.GC()
	restore = CollectLate()
	if is := percent(); is != usualGC {
		t.Errorf("a large heap is collected at %d %%, want %d", is, usualGC)
	}
	restore()
	runtime.KeepAlive(large)
}
