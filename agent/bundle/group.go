package bundle

import (
	"context"
	"sync"
)

// usualWorkers is how many requests are under way at a time: enough to hide
// that each waits for an answer, and their parts fit into memory.
const usualWorkers = 4

// group runs functions at the same time, as many as there are slots. The first
// error ends the context of the others.
type group struct {
	ctx     context.Context
	fail    context.CancelCauseFunc
	slots   chan struct{} // may be shared by several groups
	running sync.WaitGroup
}

func newGroup(ctx context.Context, slots chan struct{}) *group {
	g := &group{slots: slots}
	g.ctx, g.fail = context.WithCancelCause(ctx)
	return g
}

// run starts a function once there is a slot, or returns why there will be none.
func (g *group) run(do func(context.Context) error) error {
	if g.ctx.Err() != nil {
		return context.Cause(g.ctx)
	}
	select {
	case g.slots <- struct{}{}:
	case <-g.ctx.Done():
		return context.Cause(g.ctx)
	}
	g.running.Go(func() {
		defer func() { <-g.slots }()
		if err := do(g.ctx); err != nil {
			g.fail(err)
		}
	})
	return nil
}

// wait returns the first error once all functions have returned.
func (g *group) wait() error {
	g.running.Wait()
	defer g.fail(nil)
	return context.Cause(g.ctx)
}
