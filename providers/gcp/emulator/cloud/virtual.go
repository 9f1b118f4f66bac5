package cloud

import (
	"container/heap"
	"sync"
	"time"
)

// Virtual is a clock that moves only by Advance. Timers run in the goroutine
// that moves it, in the order of their times, those of the same time in the
// order in which they were set.
type Virtual struct {
	mu     sync.Mutex
	now    time.Time
	set    uint64
	timers timerHeap
	// advancing is held by the goroutine that runs timers.
	advancing sync.Mutex
}

// NewVirtual returns a clock that stands at start.
func NewVirtual(start time.Time) *Virtual { return &Virtual{now: start} }

// Now is where the clock stands; within a timer, the timer's time.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// AfterFunc sets a timer. One that is due already runs at the next advance.
func (v *Virtual) AfterFunc(at time.Time, f func()) (stop func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.set++
	t := &timer{at: at, set: v.set, f: f}
	heap.Push(&v.timers, t)
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if t.index >= 0 {
			heap.Remove(&v.timers, t.index)
		}
	}
}

// Advance moves the clock forward by d and runs what is due by then.
func (v *Virtual) Advance(d time.Duration) { v.AdvanceTo(v.Now().Add(d)) }

// AdvanceTo moves the clock to end and runs what is due by then, also what
// timers set on the way. It never moves back. A timer must not call it.
func (v *Virtual) AdvanceTo(end time.Time) {
	v.advancing.Lock()
	defer v.advancing.Unlock()
	for {
		f := v.due(end)
		if f == nil {
			return
		}
		f()
	}
}

// Next is when the earliest timer is due, false if there is none.
func (v *Virtual) Next() (time.Time, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.timers) == 0 {
		return time.Time{}, false
	}
	return v.timers[0].at, true
}

// due takes the next timer that is due by end and moves the clock to it, or to
// end if there is none.
func (v *Virtual) due(end time.Time) func() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.timers) == 0 || v.timers[0].at.After(end) {
		if end.After(v.now) {
			v.now = end
		}
		return nil
	}
	t := heap.Pop(&v.timers).(*timer)
	if t.at.After(v.now) {
		v.now = t.at
	}
	return t.f
}

type timer struct {
	at    time.Time
	set   uint64
	f     func()
	index int // in the heap, -1 once out of it
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].set < h[j].set
	}
	return h[i].at.Before(h[j].at)
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.index = -1
	return t
}
