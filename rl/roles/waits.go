package roles

import (
	"context"
	"time"
)

// signal is closed and replaced at each change of what it guards.
type signal struct{ changed chan struct{} }

func newSignal() signal { return signal{changed: make(chan struct{})} }

// notify lets all that wait check again.
func (s *signal) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// concurrency is how many calls of an actor run at once: all of its workers may wait for the journal, or for room.
const concurrency = 1 << 14

// The waits between attempts.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 5 * time.Second
)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// longest is the longest time that callers may name, in seconds.
const longest = 366 * 24 * 3600

// within ends a context after so many seconds, as a caller has named them.
func within(ctx context.Context, limit float64) (context.Context, context.CancelFunc) {
	if !(limit > 0) { // as NaN is not
		limit = 0
	}
	return context.WithTimeout(ctx, seconds(min(limit, longest)))
}
