package main

import (
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func destroyCommand(a *app) *cobra.Command {
	flags := applyFlags{wait: waitReady}
	var config configFlags
	var targets []string
	cmd := &cobra.Command{
		Use:   "destroy [DIR]",
		Short: "Take down everything, or what --target names",
		Long: `Take down everything this stack made: jobs are stopped, slices deleted, and
nothing is left running. The state stays, and logs with it. Outputs go, too; with
--target they stay as they were recorded.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.validate(); err != nil {
				return err
			}
			l, err := a.locate(cmd.Context(), args, config)
			if err != nil {
				return err
			}
			addrs, err := l.addresses("--target", targets)
			if err != nil {
				return err
			}
			l.desired = schema.Desired{}
			r := &runner{app: a, flags: &flags, l: l, destroying: true}
			r.c = &change{keeps: true, unlaunch: addrs, unlaunchAll: len(addrs) == 0, desired: func(doc *state.Document) schema.Desired {
				if len(addrs) > 0 {
					return apply.Without(doc.Desired, addrs)
				}
				return schema.Desired{Providers: doc.Desired.Providers}
			}}
			return r.apply(cmd.Context())
		},
	}
	flags.registerRun(cmd)
	config.register(cmd)
	cmd.Flags().StringArrayVar(&targets, "target", nil, "only `ADDR` and what depends on it; may be repeated")
	return cmd
}
