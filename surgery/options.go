package surgery

import (
	"context"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// Options are the flags of every verb under state: which stack.
type Options struct {
	Configuration configuration.Options
	Dir           string
}

// LocateState finds the stack of a directory.
func LocateState(ctx context.Context, a *terminal.Terminal, f *Options) (*configuration.Loaded, error) {
	return configuration.Locate(ctx, a, []string{f.Dir}, f.Configuration)
}

// EditOptions are those of the verbs that change the state by hand.
type EditOptions struct {
	Options
	LeaseTimeout time.Duration
}

// EditState changes the state under the lease, without acting on the world.
func EditState(ctx context.Context, a *terminal.Terminal, s *stack.Stack, wait time.Duration, change func(doc *state.Document) (*state.Document, error)) error {
	before, _ := store.ReadLease(ctx, s.Store) // without it there is no wait
	err := stack.UnderLease(ctx, a, s, store.LeaseConfig{Wait: wait}, func(ctx context.Context, w apply.Rewriter) error {
		_, err := w.Edit(ctx, change)
		return err
	})
	if err == nil && before.Yields && before.Live(time.Now()) {
		s.AwaitWatch(ctx)
	}
	return err
}
