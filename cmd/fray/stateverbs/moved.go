package stateverbs

import (
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/surgery"
	"github.com/fray-ml/fray/terminal"
)

func movedCommand(a *terminal.Terminal) *cobra.Command {
	var flags surgery.Options
	var force bool
	cmd := &cobra.Command{
		Use:   "moved",
		Short: "Confirm that a state's directory was moved here",
		Long: `Confirm that the directory in which the state is kept was moved here. fray uses a
directory only where it was made, since a copy of it names the tasks of the
original, and would end them. A directory that was renamed is known again by
itself; one that came from another file system, a backup or another machine is
not. While the original is still there nothing is confirmed. --force is for one
that was made on another machine: nothing of it must run there any more.

What ran on slices of provider local ended with the move, and is started again by
the next fray apply.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := surgery.OpenForRepair(cmd.Context(), a, &flags)
			if err != nil {
				return err
			}
			return surgery.ConfirmMove(cmd.Context(), a, s, force)
		},
	}
	register.State(&flags, cmd)
	cmd.Flags().BoolVar(&force, "force", false, "also from another machine, where nothing of it runs any more")
	return cmd
}
