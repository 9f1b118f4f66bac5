package gcp

import (
	"context"
	"sync"
	"time"

	"github.com/fray-ml/fray/state/store"
)

// lanes holds what a Bucket remembers of the objects that it writes.
type lanes struct {
	interval time.Duration

	mu    sync.Mutex
	byKey map[string]*lane
}

// lane is one object's: its writes follow each other at a distance.
type lane struct {
	turn  chan struct{} // held by the one who writes
	users int           // guarded by lanes.mu

	// Guarded by turn.
	free time.Time        // when the next write may begin
	seen store.Generation // the newest known; Absent if none is
}

const (
	manyLanes = 4096        // from here on idle ones are forgotten
	idleLane  = time.Minute // after its last write
)

// enter waits for the turn to write an object. leave must follow.
func (l *lanes) enter(ctx context.Context, key string) (*lane, error) {
	own := l.use(key)
	select {
	case own.turn <- struct{}{}:
	case <-ctx.Done():
		l.unuse(own)
		return nil, context.Cause(ctx)
	}
	if err := pause(ctx, time.Until(own.free)); err != nil {
		l.leave(own)
		return nil, err
	}
	return own, nil
}

func (l *lanes) leave(own *lane) {
	<-own.turn
	l.unuse(own)
}

// wrote notes a write that has happened, or may have.
func (l *lanes) wrote(own *lane) { own.free = time.Now().Add(l.interval) }

func (l *lanes) use(key string) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, ok := l.byKey[key]
	if !ok {
		if l.byKey == nil {
			l.byKey = map[string]*lane{}
		}
		l.forgetIdle()
		own = &lane{turn: make(chan struct{}, 1)}
		l.byKey[key] = own
	}
	own.users++
	return own
}

func (l *lanes) unuse(own *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own.users--
}

func (l *lanes) forgetIdle() {
	if len(l.byKey) < manyLanes {
		return
	}
	before := time.Now().Add(-idleLane)
	for key, own := range l.byKey {
		if own.users == 0 && own.free.Before(before) {
			delete(l.byKey, key)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
