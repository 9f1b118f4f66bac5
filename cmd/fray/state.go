package main

import (
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/surgery"
	"github.com/fray-ml/fray/terminal"
)

func stateCommand(a *terminal.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Inspect the state, and edit it by hand",
	}
	cmd.AddCommand(
		stateListCommand(a), stateShowCommand(a), statePullCommand(a), stateHistoryCommand(a), stateLeaseCommand(a),
		stateMoveCommand(a), stateRemoveCommand(a), stateImportCommand(a),
		statePushCommand(a), stateRollbackCommand(a), stateRebuildCommand(a), stateMigrateCommand(a), stateMovedCommand(a), stateRekeyCommand(a),
	)
	return cmd
}

func registerState(f *surgery.Options, cmd *cobra.Command) {
	registerConfig(&f.Configuration, cmd)
	cmd.Flags().StringVarP(&f.Dir, "chdir", "C", ".", "act on the stack of `DIR` (or of one file)")
}

func registerEdit(f *surgery.EditOptions, cmd *cobra.Command) {
	registerState(&f.Options, cmd)
	cmd.Flags().DurationVar(&f.LeaseTimeout, "lease-timeout", 0, "how long to wait for another process that is changing the stack")
}
