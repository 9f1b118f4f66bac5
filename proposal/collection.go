package proposal

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	usualGC = 100 // Go's own percentage
	// manyJobsGC is the pace of the garbage collector above the floor: most of what a large
	// plan allocates stays in use until it is shown.
	manyJobsGC = 30
	// smallHeap is how large a heap may grow before it is collected, and heapOfJob by how much
	// more for each job: about half of what a plan needs in the end.
	smallHeap = 48 << 20
	heapOfJob = 2 << 10
)

// Collection has the garbage of a plan collected late: while a heap is small, collecting it
// often costs more than it saves.
type Collection struct {
	mu    sync.Mutex
	ended bool
	floor uint64 // bytes
}

// CollectLate begins a Collection. It does nothing where a user has set a percentage.
func CollectLate() *Collection {
	c := &Collection{floor: smallHeap}
	if was := debug.SetGCPercent(usualGC); was != usualGC {
		debug.SetGCPercent(was)
		c.ended = true
	}
	c.adjust()
	return c
}

// Jobs states how many jobs are planned.
func (c *Collection) Jobs(n int) {
	c.mu.Lock()
	c.floor = max(smallHeap, uint64(n)*heapOfJob)
	c.mu.Unlock()
}

// End restores the usual pace.
func (c *Collection) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.ended = true
		debug.SetGCPercent(usualGC)
	}
}

// adjust sets the percentage by what is in use, and again after each collection.
func (c *Collection) adjust() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	used := uint64(1 << 20)
	if live[0].Value.Kind() == metrics.KindUint64 {
		used = max(used, live[0].Value.Uint64())
	}
	percent := manyJobsGC
	if c.floor > used {
		percent = max(percent, int(100*(c.floor-used)/used))
	}
	debug.SetGCPercent(percent)
	runtime.AddCleanup(&collected{by: c}, (*Collection).adjust, c)
}

// collected is garbage: the next collection finds it.
type collected struct{ by *Collection }
