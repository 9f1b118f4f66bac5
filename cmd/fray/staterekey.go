package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/apply"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/state/store"
)

func stateRekeyCommand(a *app) *cobra.Command {
	var flags editFlags
	cmd := &cobra.Command{
		Use:   "rekey",
		Short: "Revoke the keys that commands and leaders have published",
		Long: `Revoke what people may have left behind who may not write to the stack's store any
more: the keys of their commands, and the authorities that certify hosts and
commands for the namespaces of actors. Hosts get new certificates, which their
tasks use from then on; nothing restarts. Tokens of commands that run now cease to
hold, and those commands have to be run again. A job's token holds until its
attempt ends. The key that seals sensitive values stays: a person who could read it
may have kept it, so change the secrets themselves.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.locateState(cmd.Context(), &flags.stateFlags)
			if err != nil {
				return err
			}
			return a.rekey(cmd.Context(), l.stack, flags.leaseTimeout)
		},
	}
	flags.register(cmd)
	return cmd
}

// rekey makes the epoch under which nothing that was published before counts.
func (a *app) rekey(ctx context.Context, s *stack, wait time.Duration) error {
	return a.underLease(ctx, s, store.LeaseConfig{Wait: wait}, func(ctx context.Context, w apply.Rewriter) error {
		removed, err := clusterkeys.Prune(ctx, s.store, time.Now(), true)
		if err != nil {
			return err
		}
		certified, err := clusterkeys.Recertify(ctx, s.store, w.Epoch, w.Valid)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "Removed %s of commands, which have to be run again. %s new certificates; the tasks run on.\n",
			counted(removed, "key", "keys"), counted(certified, "slice has", "slices have"))
		fmt.Fprintln(a.stdout, "The key of sensitive values is the same: change secrets that a removed person could read.")
		return nil
	})
}
