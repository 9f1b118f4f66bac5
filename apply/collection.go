package apply

import (
	"runtime"
	"runtime/debug"
)

const (
	// heapFloor is how large the heap of a small stack may grow before it is collected.
	heapFloor = 64 << 20
	// usualGC is Go's own percentage.
	usualGC = 100
)

// CollectLate has the garbage of steps collected less often, as long as the heap is small:
// every step leaves the former document and plan behind, and of a stack of a few megabytes
// that would be collected every few steps. What is loaded by then counts as the stack. It
// returns what restores the usual pace. It leaves a percentage alone that a user has set.
func CollectLate() (restore func()) {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	lives := max(mem.NextGC/2, 1<<20)
	was := debug.SetGCPercent(int(max(usualGC, usualGC*heapFloor/lives)))
	restore = func() { debug.SetGCPercent(was) }
	if was != usualGC {
		restore()
		return func() {}
	}
	return restore
}
