package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/profiling"
	"github.com/fray-ml/fray/terminal"
)

func profileCommand(a *terminal.Terminal) *cobra.Command {
	var config configuration.Options
	var o profiling.Options
	var dir string
	cmd := &cobra.Command{
		Use:   "profile JOB[.TASK] [flags]",
		Short: "Measure what a running task does",
		Long: `Measure the processes of a task on its host, while it runs: Python by py-spy, which
is installed there if it is missing; actors of fray and other Go programs that serve
their profiles by pprof. Without --out, a flame graph (.svg) and the profile
(.speedscope.json, .pb.gz) are written to this directory; stacks are printed. The
controller's page lists the last profiles of a job. docs/guides/debugging.md has more.

  fray profile job.train --duration 10s
  fray profile job.train[3].1 --type stacks

The first Ctrl-C ends the measuring early and keeps what was measured; the second one
ends the command.`,
		Args:                  cobra.ExactArgs(1),
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			job, task := profiling.Address(args[0])
			given := cmd.Flags().Changed("task") || cmd.Flags().Changed("host")
			switch {
			case task >= 0 && given, cmd.Flags().Changed("task") && cmd.Flags().Changed("host"):
				return fmt.Errorf("fray profile: name one task: as %s.0, by --task or by --host", job)
			case task >= 0:
				o.Task = task
			}
			l, err := configuration.Locate(cmd.Context(), a, []string{dir}, config)
			if err != nil {
				return err
			}
			addrs, err := l.Addresses("profile", []string{job})
			if err != nil {
				return err
			}
			return profiling.Run(cmd.Context(), a, l, addrs[0], o)
		},
	}
	register.Config(&config, cmd)
	cmd.Flags().StringVar(&o.Kind, "type", "cpu", "measure `KIND`: cpu, memory or stacks")
	cmd.Flags().DurationVar(&o.Duration, "duration", 30*time.Second, "measure for `TIME`; stacks, and the memory of Go, are of one moment")
	cmd.Flags().IntVar(&o.Rate, "rate", 100, "take `N` samples in a second of Python processes")
	cmd.Flags().IntVar(&o.PID, "pid", 0, "measure process `N` of the host instead of the main one with all that it started")
	cmd.Flags().IntVar(&o.Task, "task", 0, "measure task `N`")
	cmd.Flags().IntVar(&o.Host, "host", -1, "measure the task on host `N` of its slice")
	cmd.Flags().StringVar(&o.Out, "out", "", "write to `FILE`, by its ending a flame graph (.svg) or the profile (.json, .pb.gz, .txt)")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "of the stack of `DIR` (or of one file)")
	return cmd
}
