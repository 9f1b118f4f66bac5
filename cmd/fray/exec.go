package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/session"
	"github.com/fray-ml/fray/terminal"
)

func execCommand(a *terminal.Terminal) *cobra.Command {
	var config configuration.Options
	var q session.Query
	var dir string
	cmd := &cobra.Command{
		Use:   "exec ADDR [flags] -- CMD...",
		Short: "Run a command beside a job's task",
		Long: `Run a command on the host of a task, in the task's environment, its directory and
its container. It ends when the connection does, and when the task does. Its exit
code is fray's.

  fray exec job.train -- nvidia-smi
  fray exec job.train[3] --task 1 -- bash

What is typed goes to the command; on a terminal it gets one of its own.`,
		Args:                  cobra.ArbitraryArgs,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("fray exec: want an address and a command, as in fray exec job.train -- ps aux")
			}
			if !cmd.Flags().Changed("tty") {
				q.Tty = q.Interactive && terminal.IsTerminal(a.Stdin) && terminal.IsTerminal(a.Stdout)
			}
			q.Command = args[1:]
			l, err := configuration.Locate(cmd.Context(), a, []string{dir}, config)
			if err != nil {
				return err
			}
			addrs, err := l.Addresses("exec", args[:1])
			if err != nil {
				return err
			}
			return session.Run(cmd.Context(), a, l, addrs[0], q)
		},
	}
	register.Config(&config, cmd)
	cmd.Flags().IntVar(&q.Task, "task", 0, "on the host of task `N`")
	cmd.Flags().BoolVarP(&q.Interactive, "interactive", "i", true, "hand on what is typed")
	cmd.Flags().BoolVarP(&q.Tty, "tty", "t", false, "give it a terminal; without the flag, if fray is on one")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "of the stack of `DIR` (or of one file)")
	return cmd
}
