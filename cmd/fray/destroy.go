package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/rollout"
	"github.com/fray-ml/fray/terminal"
)

func destroyCommand(a *terminal.Terminal) *cobra.Command {
	flags := rollout.Options{Wait: rollout.WaitReady}
	var dir string
	cmd := &cobra.Command{
		Use:   "destroy [DIR | FILE...]",
		Short: "Take down everything, or what --target names",
		Long: `Take down everything this stack made: jobs are stopped, slices deleted, and
nothing is left running. The state stays, and logs with it. Outputs go, too; with
--target they stay as they were recorded.

fray plan --destroy shows beforehand what goes, and saves it for fray apply. With
--json standard output has two documents, as that of fray apply --json.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.Validate(); err != nil {
				return err
			}
			flags.Destroy = true
			if len(args) > 0 && cmd.Flags().Changed("chdir") {
				return fmt.Errorf("fray destroy: %s and --chdir both name a stack; leave one out", args[0])
			}
			if len(args) == 0 {
				args = []string{dir}
			}
			return applyChange(cmd.Context(), a, args, &flags)
		},
	}
	registerRun(&flags, cmd)
	register.Config(&flags.Options, cmd)
	register.Policies(&flags.Policies, cmd)
	cmd.Flags().BoolVar(&flags.JSON, "json", false, "print JSON, as fray apply does (docs/plan-json.md)")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "destroy the stack of `DIR` (or of one file)")
	cmd.Flags().StringArrayVar(&flags.Targets, "target", nil, "only `ADDR` and what depends on it; may be repeated")
	return cmd
}
