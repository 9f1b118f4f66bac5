package stateverbs

import (
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/surgery"
	"github.com/fray-ml/fray/terminal"
)

func rekeyCommand(a *terminal.Terminal) *cobra.Command {
	var flags surgery.EditOptions
	cmd := &cobra.Command{
		Use:   "rekey",
		Short: "Make a new key for secrets, and revoke what was published with the old one",
		Long: `Take away what people may have left behind or kept who may not read or write the
stack's store any more. The stack gets a new key, and all that is sealed in its
state is sealed anew: who has the former key opens nothing that is written from
then on. What was written before they may have kept, so change the secrets
themselves, too. The keys of commands, and the authorities that certify hosts and
commands for the namespaces of actors, are removed. Hosts get new certificates,
which their tasks use from then on; nothing restarts, and fray plan shows no change.
Commands that run now have to be run again. A job's token holds until its attempt
ends. Plans saved before, and versions of the state from before, cannot be applied or
rolled back to where they have secrets. An interrupted rekey is finished by the next
command that changes the stack.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := surgery.LocateState(cmd.Context(), a, &flags.Options)
			if err != nil {
				return err
			}
			return surgery.RekeyStack(cmd.Context(), a, l.Stack, flags.LeaseTimeout)
		},
	}
	register.Edit(&flags, cmd)
	return cmd
}
