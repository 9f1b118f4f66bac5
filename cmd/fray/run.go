package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/commandline"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/runclient"
	"github.com/fray-ml/fray/terminal"
)

func runCommand(a *terminal.Terminal) *cobra.Command {
	var config configuration.Options
	var dir, namespace string
	cmd := &cobra.Command{
		Use:   "run -- COMMAND [ARG...]",
		Short: "Run a program of this machine as a client of the cluster",
		Long: `Run a program here that launches jobs on the stack: it finds the cluster that
fray watch serves in FRAY_CLUSTER_SPEC and FRAY_CLUSTER_TOKEN, as a job does, and
acts as the user who runs it, who must be allowed to write to the stack's store. Jobs that
it submits live on when it ends. Actors that it creates end with it, within half a minute
even if it is killed, unless they are detached. It may call the actors of every namespace;
without --namespace it works in the one that its first launch or reservation founds. The
exit code is the program's.`,
		Args:        cobra.MinimumNArgs(1),
		Annotations: map[string]string{commandline.OfProgram: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := configuration.Locate(cmd.Context(), a, []string{dir}, config)
			if err != nil {
				return err
			}
			if !l.Stack.AwaitServed(cmd.Context()) {
				return errors.New("no controller serves this stack: start fray watch, here or elsewhere, and try again")
			}
			return runclient.RunProgram(cmd.Context(), a, l, args, namespace)
		},
	}
	cmd.Flags().SetInterspersed(false)
	register.Config(&config, cmd)
	cmd.Flags().StringVar(&namespace, "namespace", "", "the `NAME` of the namespace that the program works in (FRAY_NAMESPACE)")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "as a client of the stack of `DIR` (or of one file)")
	return cmd
}
