package main

import (
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/follow"
	"github.com/fray-ml/fray/terminal"
)

func logsCommand(a *terminal.Terminal) *cobra.Command {
	var config configuration.Options
	var q follow.Query
	var dir string
	cmd := &cobra.Command{
		Use:   "logs [ADDR...]",
		Short: "Print what jobs' tasks write",
		Long: `Print what the tasks of jobs wrote, by the time at which they wrote it, each line with
its task where there are several. ADDR names a job, an instance of it, a group or a
module; without one it is the whole stack. Without --attempt, the last attempt. With -f
what is written comes from the tasks' hosts at once, and through the store where they
cannot be reached.

--plot draws the curve of a metric instead, over all attempts, of lines such as
"step 10  loss 0.5  reward 0.8": two spaces, a name, a space and a number for each metric.
With -f it is drawn again as values come.

  fray logs -f --plot val/exact_match`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if q.Since < 0 {
				return fmt.Errorf("--since=%s: want a time that is over, such as 10m", q.Since)
			}
			l, err := configuration.Locate(ctx, a, []string{dir}, config)
			if err != nil {
				return err
			}
			if q.Addrs, err = l.Addresses("logs", args); err != nil {
				return err
			}
			return follow.Print(ctx, a, l, q)
		},
	}
	register.Config(&config, cmd)
	cmd.Flags().BoolVarP(&q.Follow, "follow", "f", false, "go on until the jobs end")
	cmd.Flags().StringVar(&q.Actor, "actor", "", "only what actor `NAME` writes: of a task that hosts several, the lines that begin with [NAME]")
	cmd.Flags().IntVar(&q.Task, "task", -1, "only task `N`")
	cmd.Flags().IntVar(&q.Attempt, "attempt", 0, "attempt `N` instead of the last one")
	cmd.Flags().IntVarP(&q.Tail, "tail", "n", -1, "only the last `N` lines of each task")
	cmd.Flags().DurationVar(&q.Since, "since", 0, "only what was written in the last `TIME`, such as 10m")
	cmd.Flags().BoolVarP(&q.Timestamps, "timestamps", "t", false, "print when each line was written, in UTC")
	cmd.Flags().StringArrayVar(&q.Plot, "plot", nil, "draw the curve of metric `NAME`; may be repeated")
	cmd.Flags().BoolVar(&q.Bare, "no-prefix", false, "print lines without the name of their task")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "use the stack of `DIR` (or of one file)")
	return cmd
}
