package apply

import (
	"context"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// lister lists one provider, one list at a time, in the background: a cloud that
// takes seconds to answer must not hold up the others. Since a list begins only
// after the one before has ended, what was in one and is not in the next has gone.
type lister struct {
	provider providers.Provider
	running  chan listed // nil: no list is under way
	begun    time.Time   // the last one
	known    bool        // inventory or err is of a list
	number   int         // of the lists that were whole
	listedAt time.Time   // when the last whole list was begun

	inventory schema.Inventory
	err       error
}

// staleAfter is when nothing is concluded any more from the last list, as the next
// one does not come.
const staleAfter = 30 * time.Second

type listed struct {
	inventory schema.Inventory
	err       error
}

// begin starts a list unless one is under way, or the last one is still good.
func (l *lister) begin(ctx context.Context, stack string, now time.Time) {
	if l.running != nil || l.isFresh(now) {
		return
	}
	running := make(chan listed, 1)
	l.running, l.begun = running, now
	go func() {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		inventory, err := l.provider.Inventory(ctx, stack)
		running <- listed{inventory, err}
	}()
}

func (l *lister) isFresh(now time.Time) bool {
	p, ok := providers.AsPacer(l.provider)
	return ok && l.known && l.err == nil && now.Sub(l.begun) < p.Pace()
}

// await takes the list that is under way. One that was listed before is waited for
// as long as there is patience, and else stands as it was.
func (l *lister) await(ctx context.Context, patience patience) {
	if l.running == nil {
		return
	}
	over := patience.over
	if !l.known {
		over = nil
	}
	select {
	case r := <-l.running:
		l.inventory, l.err, l.known, l.running = r.inventory, r.err, true, nil
		if l.err == nil {
			l.number, l.listedAt = l.number+1, l.begun
		}
	case <-over:
	case <-ctx.Done():
		if !l.known {
			l.err = context.Cause(ctx)
		}
	}
}

// patience runs out once for all who wait.
type patience struct {
	over chan struct{}
	stop func() bool
}

func newPatience(d time.Duration) patience {
	if d <= 0 {
		return patience{stop: func() bool { return true }}
	}
	over := make(chan struct{})
	return patience{over: over, stop: time.AfterFunc(d, func() { close(over) }).Stop}
}
