package host

import (
	"slices"
	"sync"
)

// mailbox holds the calls of an actor, or of a concurrency group of it, that
// wait, and runs them in the order in which they came, so many at once.
type mailbox struct {
	maxConcurrency int // calls that run at once

	mu      sync.Mutex
	waiting []*call
	next    int // index in waiting
	running int
}

// push lets a call wait, and reports whether there was room.
func (m *mailbox) push(c *call) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting)-m.next >= maxMailbox && !m.compact() {
		return false
	}
	m.waiting = append(m.waiting, c)
	if m.running < m.maxConcurrency {
		m.running++
		go m.work()
	}
	return true
}

// compact drops calls that were given up, and reports whether there is room then.
func (m *mailbox) compact() bool {
	m.waiting = slices.DeleteFunc(m.waiting[m.next:], func(c *call) bool { return c.is(phaseOver) })
	m.next = 0
	return len(m.waiting) < maxMailbox
}

// work runs calls until none waits. Their replies are written after they have
// left: a slow reader does not block other callers.
func (m *mailbox) work() {
	finished := false
	defer func() {
		if !finished { // a method ended this goroutine
			go m.work()
		}
	}()
	c := m.pop()
	for c != nil {
		reply := c.run()
		next := m.pop()
		if next == nil {
			finished = true
		}
		c.answer(reply, next == nil)
		c = next
	}
	finished = true
}

// pop is the next call; without one its caller runs no more.
func (m *mailbox) pop() *call {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.next == len(m.waiting) {
		m.waiting, m.next = m.waiting[:0], 0
		if cap(m.waiting) > 1024 {
			m.waiting = nil
		}
		m.running--
		return nil
	}
	c := m.waiting[m.next]
	m.waiting[m.next] = nil
	m.next++
	if m.next > 1024 && m.next > len(m.waiting)/2 {
		m.waiting = append(make([]*call, 0, len(m.waiting)-m.next+1024), m.waiting[m.next:]...)
		m.next = 0
	}
	return c
}

// snapshot is what waits, calls that are over among it.
func (m *mailbox) snapshot() []*call {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.waiting[m.next:])
}
