package surgery

import (
	"context"
	"fmt"
	"time"

	"github.com/fray-ml/fray/apply"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// RekeyStack makes a new key, and the epoch under which nothing that was published before
// counts.
func RekeyStack(ctx context.Context, a *terminal.Terminal, s *stack.Stack, wait time.Duration) error {
	before, _ := store.ReadLease(ctx, s.Store) // without it no watch is waited for
	err := stack.UnderLease(ctx, a, s, store.LeaseConfig{Wait: wait}, func(ctx context.Context, w apply.Rewriter) error {
		// A command that may publish its key may not be sealing with the old one any more.
		removed, err := clusterkeys.Prune(ctx, s.Store, time.Now(), true)
		if err != nil {
			return err
		}
		if err := s.Keys.Provide(ctx, nil); err != nil {
			return err
		}
		if err := s.Keys.Rotate(ctx); err != nil {
			return err
		}
		if err := s.ResealState(ctx, w); err != nil {
			return err
		}
		certified, damaged, err := clusterkeys.Recertify(ctx, s.Store, w.Epoch, w.Valid)
		if err != nil {
			return err
		}
		if err := s.Keys.Settle(ctx); err != nil {
			return err
		}
		fmt.Fprintf(a.Stdout, "The stack has a new key, with which all of its secrets are sealed anew.\n"+
			"Removed %s of commands, which have to be run again. %s new certificates; the tasks run on.\n",
			terminal.Counted(removed, "key", "keys"), terminal.Counted(certified, "slice has", "slices have"))
		for _, key := range damaged {
			fmt.Fprintf(a.Stdout, "What is in %s cannot be read: it gets its certificates when `fray apply` or `fray watch` writes it again.\n", key)
		}
		fmt.Fprintln(a.Stdout, "Who could read the state before may have kept what was in it: change the secrets themselves, too.")
		return nil
	})
	if err == nil && before.Yields && before.Live(time.Now()) {
		s.AwaitWatch(ctx)
	}
	return err
}
