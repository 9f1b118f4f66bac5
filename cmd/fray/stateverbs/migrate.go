package stateverbs

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/migration"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/surgery"
	"github.com/fray-ml/fray/terminal"
)

func migrateCommand(a *terminal.Terminal) *cobra.Command {
	var flags surgery.EditOptions
	cmd := &cobra.Command{
		Use:   "migrate FROM",
		Short: "Bring the state here from where it was kept before",
		Long: `Bring the state, with everything beside it, from FROM to where the fray block
says that it is kept; FROM is a directory, such as .fray, or gs://BUCKET/PREFIX.
Every object is read back and compared. What runs keeps running: its agents go
on at the new place. FROM is left as it is but for a note that says where the
state went, by which fray rejects it from then on. Interrupted, it may be run
again. Each workspace is brought by itself: FROM is the place of the default one,
and --workspace NAME brings what is kept below it.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			where, err := configuration.LocateSite(a, []string{flags.Dir}, flags.Configuration)
			if err != nil {
				return err
			}
			from, err := migration.OpenFrom(ctx, where, args[0])
			if err != nil {
				return err
			}
			if err := where.Make(ctx); err != nil && !errors.Is(err, stack.ErrWorkspaceExists) {
				return err
			}
			to, err := stack.Open(ctx, where, true)
			if err != nil {
				return err
			}
			m := &migration.Migration{Terminal: a, From: from, To: to, Wait: flags.LeaseTimeout}
			return m.Run(ctx)
		},
	}
	register.Edit(&flags, cmd)
	return cmd
}
