package bucket

import (
	"context"
	"sync"
	"time"

	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state/store"
)

// pacers holds what a Bucket remembers of the objects that it writes.
type pacers struct {
	interval time.Duration

	mu    sync.Mutex
	byKey map[string]*pacer
}

// pacer is one object's: its writes follow each other at a distance.
type pacer struct {
	turn  chan struct{} // held by the one who writes
	users int           // guarded by pacers.mu

	// Guarded by turn.
	free time.Time        // when the next write may begin
	seen store.Generation // the newest known; Absent if none is
}

const (
	manyPacers = 4096        // from here on idle ones are forgotten
	idlePacer  = time.Minute // after its last write
)

// enter waits for the turn to write an object. leave must follow.
func (l *pacers) enter(ctx context.Context, key string) (*pacer, error) {
	own := l.use(key)
	select {
	case own.turn <- struct{}{}:
	case <-ctx.Done():
		l.unuse(own)
		return nil, context.Cause(ctx)
	}
	if !sleep.For(ctx, time.Until(own.free)) {
		l.leave(own)
		return nil, context.Cause(ctx)
	}
	return own, nil
}

func (l *pacers) leave(own *pacer) {
	<-own.turn
	l.unuse(own)
}

// wrote notes a write that has happened, or may have.
func (l *pacers) wrote(own *pacer) { own.free = time.Now().Add(l.interval) }

func (l *pacers) use(key string) *pacer {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, ok := l.byKey[key]
	if !ok {
		if l.byKey == nil {
			l.byKey = map[string]*pacer{}
		}
		l.forgetIdle()
		own = &pacer{turn: make(chan struct{}, 1)}
		l.byKey[key] = own
	}
	own.users++
	return own
}

func (l *pacers) unuse(own *pacer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own.users--
}

func (l *pacers) forgetIdle() {
	if len(l.byKey) < manyPacers {
		return
	}
	before := time.Now().Add(-idlePacer)
	for key, own := range l.byKey {
		if own.users == 0 && own.free.Before(before) {
			delete(l.byKey, key)
		}
	}
}
