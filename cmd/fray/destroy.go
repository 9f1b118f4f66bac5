package main

import (
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/rollout"
	"github.com/fray-ml/fray/terminal"
)

func destroyCommand(a *terminal.Terminal) *cobra.Command {
	flags := rollout.Options{Wait: rollout.WaitReady}
	cmd := &cobra.Command{
		Use:   "destroy [DIR]",
		Short: "Take down everything, or what --target names",
		Long: `Take down everything this stack made: jobs are stopped, slices deleted, and
nothing is left running. The state stays, and logs with it. Outputs go, too; with
--target they stay as they were recorded.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.Validate(); err != nil {
				return err
			}
			flags.Destroy = true
			return applyChange(cmd.Context(), a, args, &flags)
		},
	}
	registerRun(&flags, cmd)
	registerConfig(&flags.Options, cmd)
	cmd.Flags().StringArrayVar(&flags.Targets, "target", nil, "only `ADDR` and what depends on it; may be repeated")
	return cmd
}
