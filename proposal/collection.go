package proposal

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	usualGC = 100 // Go's own percentage
	// smallGC is that of a small heap, and largeGC that of a large one: most of what a large
	// plan allocates stays in use until it is shown.
	smallGC = 400
	largeGC = 100
	// garbageRoom is how many bytes of garbage are worth no collection in between, and jobRoom
	// how many for each job that is declared: ten times as many jobs are then collected as often.
	garbageRoom = 320 << 20
	jobRoom     = 4000
)

// Collection has the garbage of a plan collected by what is in use: while that is little,
// collecting often costs more than it saves; when it is much, the garbage costs memory.
type Collection struct {
	mu    sync.Mutex
	ended bool
	jobs  int // that are declared
	set   int // the percentage, 0 before it is set
}

// BeginCollection begins a Collection. It does nothing where a user has set a percentage.
func BeginCollection() *Collection {
	c := &Collection{}
	if was := debug.SetGCPercent(usualGC); was != usualGC {
		debug.SetGCPercent(was)
		c.ended = true
	}
	c.adjust()
	return c
}

// Expect takes in how many jobs are declared, as far as that is known.
func (c *Collection) Expect(jobs int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs = jobs
	if !c.ended {
		c.setPercent()
	}
}

// setPercent sets the percentage by what is in use.
func (c *Collection) setPercent() {
	if percent := percentFor(liveBytes(), c.jobs); percent != c.set {
		debug.SetGCPercent(percent) // which stops the process
		c.set = percent
	}
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
	c.setPercent()
	runtime.AddCleanup(&collected{by: c}, (*Collection).adjust, c)
}

// collected is garbage: the next collection finds it.
type collected struct{ by *Collection }

// liveBytes is how much of the heap was in use at the last collection.
func liveBytes() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return live[0].Value.Uint64()
}

// percentFor is the percentage for so many bytes in use and so many jobs.
func percentFor(live uint64, jobs int) int {
	room := max(garbageRoom, uint64(jobs)*jobRoom)
	return int(min(smallGC, max(largeGC, 100*room/max(live, 1))))
}
