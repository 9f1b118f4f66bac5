package stateverbs

import (
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/surgery"
	"github.com/fray-ml/fray/terminal"
)

func rebuildCommand(a *terminal.Terminal) *cobra.Command {
	var flags surgery.RebuildOptions
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Make a lost or damaged state again from what runs",
		Long: `Make a lost or damaged state again from what providers and hosts report: jobs
that run are found with their attempts and budgets, and keep running. Jobs that
have ended are found in the records that fray keeps beside the state, and do not
run again. A declared job of which nothing says that it never ran, or how it
ended, is recorded as stopped; fray apply --replace=ADDR starts it again. Try fray state history and
rollback first: an older state knows more.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return surgery.RebuildState(cmd.Context(), a, &flags)
		},
	}
	register.Edit(&flags.EditOptions, cmd)
	cmd.Flags().StringVar(&flags.Mark, "stack", "", "the `MARK` of the stack, where there is more than one")
	cmd.Flags().BoolVar(&flags.WithoutFiles, "without-files", false, "do not read the files; what has run and is declared in them may be run again")
	cmd.Flags().BoolVar(&flags.Force, "force", false, "although the present state can be read")
	return cmd
}
