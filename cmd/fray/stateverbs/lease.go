package stateverbs

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/surgery"
	"github.com/fray-ml/fray/terminal"
)

func leaseCommand(a *terminal.Terminal) *cobra.Command {
	var flags surgery.Options
	var asJSON, end, force bool
	cmd := &cobra.Command{
		Use:   "lease",
		Short: "Show who may change the stack, or end a lease by force",
		Long: `Show who holds the stack's lease: host, process, command, and since when. A
lease lapses by itself seconds after its holder died, so nothing has to be
unlocked after a crash. --break ends the lease of a holder that lives, for one
that hangs or was forgotten on a machine out of reach; it needs --force and is
recorded. Its former holder cannot write any more and stops within seconds.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if force && !end {
				return errors.New("--force goes with --break")
			}
			l, err := surgery.LocateState(cmd.Context(), a, &flags)
			if err != nil {
				return err
			}
			sight, err := l.Stack.Clock.Observe(cmd.Context())
			if err != nil {
				return err
			}
			if end {
				if err := store.CheckPlace(l.Stack.Store); err != nil {
					return err
				}
			}
			if sight.Lease.Holder == "" {
				fmt.Fprintln(a.Stdout, "This stack's lease has never been held.")
				return nil
			}
			if end {
				return surgery.BreakLease(cmd.Context(), a, l.Stack, sight, force)
			}
			if asJSON {
				return a.PrintJSON(sight.Lease)
			}
			return surgery.ShowLease(a, l.Stack, sight)
		},
	}
	register.State(&flags, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&end, "break", false, "end the current holder's lease")
	cmd.Flags().BoolVar(&force, "force", false, "with --break: although the holder lives")
	return cmd
}
