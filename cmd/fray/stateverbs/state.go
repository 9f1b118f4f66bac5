// Package stateverbs has fray state and its verbs, which inspect the state and edit it by hand.
package stateverbs

import (
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/terminal"
)

// Command is fray state.
func Command(a *terminal.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Inspect the state, and edit it by hand",
	}
	cmd.AddCommand(
		listCommand(a), showCommand(a), pullCommand(a), historyCommand(a), leaseCommand(a),
		moveCommand(a), removeCommand(a), importCommand(a),
		pushCommand(a), rollbackCommand(a), rebuildCommand(a), migrateCommand(a), movedCommand(a), rekeyCommand(a),
	)
	return cmd
}
