package wire

import (
	"container/list"
	"sync"
)

// Memory is how many bytes the large messages of a process may take at once. Others wait in their
// order; one that is larger than all of it gets it alone.
type Memory struct {
	limit uint64

	mu      sync.Mutex
	used    uint64
	waiting list.List // of *Reservation
}

// Reservation is the share of one message.
type Reservation struct {
	of      *Memory
	size    uint64
	granted func()
	place   *list.Element // nil: it does not wait
	held    bool
}

// NewMemory is memory of so many bytes.
func NewMemory(limit uint64) *Memory { return &Memory{limit: limit} }

// Reserve asks for memory. granted is called on a goroutine of its own when it is there, unless it is
// released before.
func (m *Memory) Reserve(size uint64, granted func()) *Reservation {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &Reservation{of: m, size: size, granted: granted}
	r.place = m.waiting.PushBack(r)
	m.grant()
	return r
}

// grant serves those that wait, as far as there is room. It needs the lock.
func (m *Memory) grant() {
	for e := m.waiting.Front(); e != nil; e = m.waiting.Front() {
		r := e.Value.(*Reservation)
		if m.used > 0 && m.used+r.size > m.limit {
			return
		}
		m.waiting.Remove(e)
		r.place, r.held = nil, true
		m.used += r.size
		go r.granted()
	}
}

// Release gives the memory back, or ends the wait for it. Nil has none.
func (r *Reservation) Release() {
	if r == nil {
		return
	}
	m := r.of
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case r.place != nil:
		m.waiting.Remove(r.place)
	case r.held:
		m.used -= r.size
	default:
		return
	}
	r.place, r.held = nil, false
	m.grant()
}

// Used is how much is reserved.
func (m *Memory) Used() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}
