package gcp

import (
	"sync"
	"time"
)

// budget allows so many calls within any minute. Unlike a limiter it keeps no queue:
// a caller that has to wait may come back or not.
type budget struct {
	perMinute int

	mu    sync.Mutex
	taken []time.Time // within the last minute, oldest first
}

// take takes one call, or returns how long to wait for it.
func (b *budget) take(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	over := 0
	for over < len(b.taken) && now.Sub(b.taken[over]) >= time.Minute {
		over++
	}
	b.taken = b.taken[over:]
	if len(b.taken) >= b.perMinute {
		return b.taken[0].Add(time.Minute).Sub(now)
	}
	b.taken = append(b.taken, now)
	return 0
}
