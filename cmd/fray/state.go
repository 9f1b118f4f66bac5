package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

func stateCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Look into the state, and mend it by hand",
	}
	cmd.AddCommand(
		stateListCommand(a), stateShowCommand(a), statePullCommand(a), stateHistoryCommand(a), stateLeaseCommand(a),
		stateMoveCommand(a), stateRemoveCommand(a), stateImportCommand(a),
		statePushCommand(a), stateRollbackCommand(a), stateRebuildCommand(a), stateMigrateCommand(a), stateMovedCommand(a), stateRekeyCommand(a),
	)
	return cmd
}

// stateFlags are the flags of every verb under state: which stack.
type stateFlags struct {
	config configFlags
	dir    string
}

func (f *stateFlags) register(cmd *cobra.Command) {
	f.config.register(cmd)
	cmd.Flags().StringVarP(&f.dir, "chdir", "C", ".", "act on the stack of `DIR` (or of one file)")
}

func (a *app) locateState(ctx context.Context, f *stateFlags) (*loaded, error) {
	return a.locate(ctx, []string{f.dir}, f.config)
}

// editFlags are those of the verbs that change the state by hand.
type editFlags struct {
	stateFlags
	leaseTimeout time.Duration
}

func (f *editFlags) register(cmd *cobra.Command) {
	f.stateFlags.register(cmd)
	cmd.Flags().DurationVar(&f.leaseTimeout, "lease-timeout", 0, "how long to wait for somebody else who is changing the stack")
}

// edit changes the state under the lease, without acting on the world.
func (a *app) edit(ctx context.Context, s *stack, wait time.Duration, change func(doc *state.Document) (*state.Document, error)) error {
	before, _ := store.ReadLease(ctx, s.store) // without it nobody is waited for
	err := a.underLease(ctx, s, store.LeaseConfig{Wait: wait}, func(ctx context.Context, w apply.Rewriter) error {
		_, err := w.Edit(ctx, change)
		return err
	})
	if err == nil && before.Yields && before.Live(time.Now()) {
		s.awaitWatch(ctx)
	}
	return err
}

// A watch that gave way comes back within moments.
const (
	watchPatience = 5 * time.Second
	watchPoll     = 100 * time.Millisecond
)

// awaitWatch waits until a watch leads again, so that nobody who looks next is
// told that none does.
func (s *stack) awaitWatch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, watchPatience)
	defer cancel()
	again := time.NewTicker(max(watchPoll, s.store.WriteInterval()/4))
	defer again.Stop()
	for {
		if lease, err := store.ReadLease(ctx, s.store); err == nil && lease.Yields && !lease.Released {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// underLease runs do with the stack's lease.
func (a *app) underLease(ctx context.Context, s *stack, c store.LeaseConfig, do func(ctx context.Context, w apply.Rewriter) error) error {
	doc, _, err := s.present(ctx)
	if err != nil {
		return err
	}
	if doc != nil {
		c.MinEpoch = max(c.MinEpoch, doc.Epoch)
	}
	c.Command = commandLine()
	lease, err := store.Acquire(ctx, s.store, c)
	if err != nil {
		return untouched(ctx, s.naming(err))
	}
	w := apply.Rewriter{Store: s.store, Version: toolVersion(), Epoch: lease.Epoch(), Valid: lease.Valid}
	err = s.keys.unchanged(lease.Context())
	if err == nil && doc != nil { // one that is lost or damaged is what the command is for
		err = s.finishRekey(lease.Context(), w)
	}
	if err == nil {
		err = do(lease.Context(), w)
	}
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if releaseErr := lease.Release(ended); releaseErr != nil && !errors.Is(releaseErr, store.ErrLeaseLost) {
		a.warn(fmt.Sprintf("the lease could not be released and lapses by itself in a few seconds: %v", releaseErr))
	}
	return err
}
