package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/bugreport"
	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/terminal"
)

func bugReportCommand(a *terminal.Terminal) *cobra.Command {
	var o bugreport.Options
	var logs int
	cmd := &cobra.Command{
		Use:   "bug-report [DIR]",
		Short: "Collect into one archive what a defect is found by",
		Long: `Collect the state of a stack, its events, plan and status, what hosts reported, the
ends of logs, versions, timings and the stacks of the controller's goroutines into one
archive (.tar.gz) that only you may read. Nothing is sent anywhere.

Sensitive values, keys and what looks like a token, a password or a secret address are
masked, also in logs and names. What is in the report is listed first, and written once
you say yes. Whatever cannot be collected is listed too: a report can be made of a stack
whose bucket cannot be reached, whose state is damaged or whose controller is dead.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Dir = "."
			if len(args) == 1 {
				o.Dir = args[0]
			}
			if o.Timeout < time.Second || logs < 1 {
				return fmt.Errorf("fray bug-report: --timeout and --logs-kib: want 1s and 1 at least")
			}
			o.Logs = logs << 10
			o.Configuration.Input = false
			return bugreport.Run(cmd.Context(), a, o)
		},
	}
	register.Config(&o.Configuration, cmd)
	cmd.Flags().StringVar(&o.Out, "out", "", "write to `FILE` (default: fray-bug-report-TIME.tar.gz)")
	cmd.Flags().BoolVar(&o.List, "list", false, "only list what would be in it")
	cmd.Flags().BoolVar(&o.Yes, "yes", false, "write it without asking")
	cmd.Flags().BoolVar(&o.IncludeConfig, "include-config", false, "add the configuration files, with sensitive values masked")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 20*time.Second, "give a part up after `TIME`")
	cmd.Flags().IntVar(&logs, "logs-kib", 64, "take the last `N` KiB of each task's log")
	return cmd
}
