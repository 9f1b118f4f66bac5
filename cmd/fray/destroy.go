package main

import (
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/rollout"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

func destroyCommand(a *terminal.Terminal) *cobra.Command {
	flags := rollout.Options{Wait: rollout.WaitReady}
	var config configuration.Options
	var targets []string
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
			l, err := configuration.Locate(cmd.Context(), a, args, config)
			if err != nil {
				return err
			}
			addrs, err := l.Addresses("--target", targets)
			if err != nil {
				return err
			}
			l.Desired = schema.Desired{}
			r := &rollout.Rollout{Terminal: a, Options: &flags, Loaded: l, Destroying: true}
			r.Change = &proposal.Change{KeepsRecorded: true, Unlaunch: addrs, UnlaunchAll: len(addrs) == 0, Desired: func(doc *state.Document) schema.Desired {
				if len(addrs) > 0 {
					return apply.Without(doc.Desired, addrs)
				}
				return schema.Desired{Providers: doc.Desired.Providers}
			}}
			return r.Apply(cmd.Context())
		},
	}
	registerRun(&flags, cmd)
	registerConfig(&config, cmd)
	cmd.Flags().StringArrayVar(&targets, "target", nil, "only `ADDR` and what depends on it; may be repeated")
	return cmd
}
