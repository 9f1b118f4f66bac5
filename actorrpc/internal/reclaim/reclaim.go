// Package reclaim keeps the garbage of large messages small. Go's collector lets a
// heap grow to twice what lives in it before it collects; one message of 64 MiB after
// another would so take several times what one needs. It keeps nothing: the runtime's
// own counters have how much was allocated since the last collection. Start with [Before].
package reclaim

import (
	"runtime"
	"runtime/metrics"
)

const (
	// Large is the size in bytes from which on a message counts.
	Large = 1 << 20
	// slack is how much may be allocated after a collection, in bytes.
	slack = 32 << 20
	// ownHeap is how much of the program's own may live for this package to act, in
	// bytes. Collecting a larger heap costs more than the memory is worth: there
	// Go's own pace holds.
	ownHeap = 256 << 20
)

// Before collects garbage where the next size bytes, about to be allocated for a
// message, would leave too much of it. Messages below [Large] never do.
func Before(size uint64) {
	if size >= Large {
		collect(size)
	}
}

// After does the same once a message of so many bytes has been let go: where the next
// one is read by a library, which does not call Before.
func After(size uint64) {
	if size >= Large {
		collect(0)
	}
}

func collect(more uint64) {
	allocated, live := heap()
	if allocated+more > slack && live < ownHeap {
		runtime.GC()
	}
}

// heap is how many bytes were allocated since the collector ended last and are still
// there, garbage or not, and how many lived then.
func heap() (allocated, live uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	objects, live := samples[0].Value.Uint64(), samples[1].Value.Uint64()
	return objects - min(objects, live), live
}
