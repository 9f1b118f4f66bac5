package host

import "sync"

// deferred are the calls of a connection whose replies wait in the ledger, as enough others
// wait to be written. The zero value has none.
type deferred struct {
	mu  sync.Mutex
	seq []uint64
}

// add notes a call, and reports whether it is the only one.
func (l *deferred) add(seq uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq = append(l.seq, seq)
	return len(l.seq) == 1
}

// first is the call that waits for the longest.
func (l *deferred) first() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq[0]
}

// next drops the first, and reports whether there are others.
func (l *deferred) next() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq = l.seq[1:]
	return len(l.seq) > 0
}

// some reports whether there are any.
func (l *deferred) some() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seq) > 0
}
