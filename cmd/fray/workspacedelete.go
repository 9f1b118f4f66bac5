package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/surgery"
	"github.com/fray-ml/fray/terminal"
)

func workspaceDeleteCommand(a *terminal.Terminal) *cobra.Command {
	var flags workspaceFlags
	var force bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Remove a workspace with its state and logs",
		Long: `Remove a workspace with its state and logs. One that still has anything is rejected
(fray destroy --workspace NAME takes it down first), and so is the current one.
With --force what runs in it runs on, unmanaged.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, _, err := flags.site(a)
			if err != nil {
				return err
			}
			switch args[0] {
			case schema.DefaultWorkspace:
				return fmt.Errorf("workspace %q belongs to every configuration and cannot be deleted; fray destroy takes down what is in it", args[0])
			case at.Workspace:
				return fmt.Errorf("workspace %q is the current one; select another one first, such as with fray workspace select %s", args[0], schema.DefaultWorkspace)
			}
			if err := stack.ValidWorkspace(args[0]); err != nil {
				return err
			}
			at = at.InWorkspace(args[0])
			at.ChosenBy = "delete " + args[0]
			s, err := stack.Open(cmd.Context(), at, false)
			if err != nil {
				return err
			}
			d := &surgery.Deletion{Terminal: a, Stack: s, Force: force, Wait: wait}
			return d.Run(cmd.Context())
		},
	}
	registerWorkspace(&flags, cmd)
	cmd.Flags().BoolVar(&force, "force", false, "although its state still has something; what runs, runs on")
	cmd.Flags().DurationVar(&wait, "lease-timeout", 0, "how long to wait for another process that is changing the workspace")
	return cmd
}
