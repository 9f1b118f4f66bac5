package gcp

import (
	"slices"
	"sync"
	"time"
)

// limiter is a bucket of perMinute tokens of which each is back a minute after
// it was taken, so that no minute, wherever it begins, sees more: which is how
// the service counts. A bucket that is filled steadily would let twice as many
// pass in the first minute, or half as many where the callers come seldom.
//
// A caller that finds it empty keeps a place in the queue, and learns when its turn is.
type limiter struct {
	perMinute int

	mu     sync.Mutex
	taken  []time.Time // within the last minute, oldest first
	queued []turn
	index  map[string]int // of queued, by name
	swept  time.Time
}

type turn struct {
	name string
	at   time.Time // as it was last returned
}

// forgotten is how long after its turn a place in the queue is kept for who
// does not come.
const forgotten = 2 * time.Minute

// take takes a token for a slice, or returns how long it has to wait.
func (l *limiter) take(name string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(name, now)
	i, ok := l.index[name]
	if !ok {
		i = len(l.queued)
		l.queued = append(l.queued, turn{name: name})
		l.index[name] = i
	}
	at := l.turn(i, now)
	if at.After(now) {
		l.queued[i].at = at
		return at.Sub(now)
	}
	l.queued = slices.Delete(l.queued, i, i+1)
	l.reindex()
	l.taken = append(l.taken, now)
	return 0
}

// sweep puts back the tokens that are back by now, and now and then forgets who
// does not come: but for the one that has.
func (l *limiter) sweep(name string, now time.Time) {
	l.taken = slices.DeleteFunc(l.taken, func(at time.Time) bool { return !at.Add(time.Minute).After(now) })
	if l.index != nil && now.Sub(l.swept) < time.Second {
		return
	}
	l.swept = now
	l.queued = slices.DeleteFunc(l.queued, func(t turn) bool { return t.name != name && now.Sub(t.at) > forgotten })
	l.reindex()
}

// reindex is called at most once for a creation, and once a second.
func (l *limiter) reindex() {
	l.index = make(map[string]int, len(l.queued))
	for i := range l.queued {
		l.index[l.queued[i].name] = i
	}
}

// turn is when the i-th of the queue may take a token: those before it take the
// tokens that are there now, and then each that comes back.
func (l *limiter) turn(i int, now time.Time) time.Time {
	i += len(l.taken)
	minutes, base := i/l.perMinute, now
	if i %= l.perMinute; i < len(l.taken) {
		base = l.taken[i]
	}
	return base.Add(time.Duration(minutes) * time.Minute)
}

// drain takes every token: the service itself has reported too many requests.
func (l *limiter) drain(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = l.taken[:0]
	for range l.perMinute {
		l.taken = append(l.taken, now)
	}
}
