// Package reclaim keeps the garbage of large messages small. Go's collector lets a
// heap grow to twice what lives in it before it collects; one message of 64 MiB after
// another would so take several times what one needs. Start with [Before].
package reclaim

import (
	"runtime"
	"runtime/metrics"
	"sync"
)

const (
	// Large is from which size on an allocation is noted, in bytes.
	Large = 1 << 20
	// slack is how much of messages may be garbage, in bytes.
	slack = 32 << 20
	// ownHeap is how much of the program's own may live for this package to act, in
	// bytes. Collecting a larger heap costs more than the memory is worth: there
	// Go's own pace holds.
	ownHeap = 256 << 20
)

var noted struct {
	sync.Mutex
	bytes uint64 // of messages, since the last collection that this package asked for
}

// Before collects garbage if much of it may be messages, and notes that so many bytes
// of a message are about to be allocated.
func Before(size uint64) {
	if size < Large {
		return
	}
	noted.Lock()
	defer noted.Unlock()
	collect(size)
	noted.bytes += size
}

// Now collects garbage if much of it may be messages: where the next message is read
// by a library, which does not call Before.
func Now() {
	noted.Lock()
	defer noted.Unlock()
	collect(0)
}

// collect needs the lock.
func collect(more uint64) {
	if noted.bytes > 0 && noted.bytes+more > slack && alive() < ownHeap {
		runtime.GC()
		noted.bytes = 0
	}
}

// After notes that so many bytes were allocated for the values of a message.
func After(size uint64) {
	if size < Large {
		return
	}
	noted.Lock()
	defer noted.Unlock()
	noted.bytes += size
}

// alive is how much lived when the collector ended last, in bytes.
func alive() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
