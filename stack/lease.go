package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// A watch that gave way comes back within moments.
const (
	watchPatience = 5 * time.Second
	watchPoll     = 100 * time.Millisecond
)

// AwaitWatch waits until a watch leads again, so that the next command does not
// report that none does.
func (s *Stack) AwaitWatch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, watchPatience)
	defer cancel()
	again := time.NewTicker(max(watchPoll, s.Store.WriteInterval()/4))
	defer again.Stop()
	for {
		if lease, err := store.ReadLease(ctx, s.Store); err == nil && lease.Yields && !lease.Released {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// UnderLease runs do with the stack's lease.
func UnderLease(ctx context.Context, a *terminal.Terminal, s *Stack, c store.LeaseConfig, do func(ctx context.Context, w apply.Rewriter) error) error {
	doc, _, err := s.Present(ctx)
	if err != nil {
		return err
	}
	if doc != nil {
		c.MinEpoch = max(c.MinEpoch, doc.Epoch)
	}
	lease, err := store.Acquire(ctx, s.Store, leaseOf(c))
	if err != nil {
		return terminal.Interrupted(ctx, s.WithWorkspace(err))
	}
	w := apply.Rewriter{Store: s.Store, Version: release.Version(), Epoch: lease.Epoch(), Valid: lease.Valid}
	err = s.Keys.CheckUnchanged(lease.Context())
	if err == nil && doc != nil { // one that is lost or damaged is what the command is for
		err = s.FinishRekey(lease.Context(), w)
	}
	if err == nil {
		err = do(lease.Context(), w)
	}
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if releaseErr := lease.Release(ended); releaseErr != nil && !errors.Is(releaseErr, store.ErrLeaseLost) {
		a.Warn(fmt.Sprintf("the lease could not be released and lapses by itself in a few seconds: %v", releaseErr))
	}
	return err
}
