package stateverbs

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/surgery"
	"github.com/fray-ml/fray/terminal"
)

func rollbackCommand(a *terminal.Terminal) *cobra.Command {
	var flags surgery.EditOptions
	cmd := &cobra.Command{
		Use:   "rollback SERIAL",
		Short: "Make an older version of the state the current one",
		Long: `Make an older version of the state the current one, under a new serial. Nothing
in the world is touched: fray plan shows afterwards what the older state and the
world differ in. Jobs keep the attempts that they have had since and go on with
the last one: a rollback repeats no replacement, stop or start. Launched jobs,
a pause and new names of jobs that were given since are no part of it either:
launched jobs and a pause stay as they are now, a renamed job gets its former name.
fray state history lists the serials.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			serial, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil {
				return fmt.Errorf("%q is no serial; fray state history lists them", args[0])
			}
			s, err := surgery.OpenForRepair(cmd.Context(), a, &flags.Options)
			if err != nil {
				return err
			}
			return surgery.Rollback(cmd.Context(), a, s, flags.LeaseTimeout, serial)
		},
	}
	register.Edit(&flags, cmd)
	return cmd
}
