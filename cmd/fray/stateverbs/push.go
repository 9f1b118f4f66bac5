package stateverbs

import (
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/surgery"
	"github.com/fray-ml/fray/terminal"
)

func pushCommand(a *terminal.Terminal) *cobra.Command {
	var flags surgery.EditOptions
	var force bool
	cmd := &cobra.Command{
		Use:   "push FILE",
		Short: "Put a state document in place of the current one",
		Long: `Put a state document, as fray state pull prints it, in place of the current one;
FILE is - for standard input. One of another lineage, or older than the current
one, is rejected; --force takes it all the same. One that was edited since it was
printed gets a new checksum, and that is reported; what fray does not know in it is
rejected. Nothing that runs is touched: of an older one, requests to replace or stop
a job that were carried out since are dropped.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pushed, err := surgery.ReadDocument(a, args[0])
			if err != nil {
				return err
			}
			s, err := surgery.OpenForRepair(cmd.Context(), a, &flags.Options)
			if err != nil {
				return err
			}
			return surgery.PushDocument(cmd.Context(), a, s, &flags, func(doc *state.Document) error {
				return surgery.MayReplace(doc, pushed, force)
			}, pushed)
		},
	}
	register.Edit(&flags, cmd)
	cmd.Flags().BoolVar(&force, "force", false, "also one of another lineage, or an older one")
	return cmd
}
