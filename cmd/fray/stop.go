package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/rollout"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/status"
	"github.com/fray-ml/fray/terminal"
)

func stopCommand(a *terminal.Terminal) *cobra.Command {
	flags := rollout.Options{Wait: rollout.WaitReady}
	var config configuration.Options
	var dir string
	cmd := &cobra.Command{
		Use:   "stop ADDR...",
		Short: "End jobs and keep them from starting again",
		Long: `End jobs and free what they run on. They stay declared and stopped until their
configuration changes or fray apply --replace=ADDR starts them again. What has
ended already is named and left as it is.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			config.Changes = true
			l, err := configuration.Locate(cmd.Context(), a, []string{dir}, config)
			if err != nil {
				return err
			}
			addrs, err := l.Addresses("stop", args)
			if err != nil {
				return err
			}
			view, err := status.Read(cmd.Context(), l)
			if err != nil {
				return err
			}
			addrs = slices.DeleteFunc(addrs, func(addr schema.Address) bool { return hasEnded(a, view.Doc, addr) })
			if len(addrs) == 0 {
				return nil
			}
			flags.AutoApprove = true
			r := &rollout.Rollout{Terminal: a, Options: &flags, Loaded: l, Stopping: true}
			r.Change = &proposal.Change{KeepsRecorded: true, Stop: addrs, Desired: func(doc *state.Document) schema.Desired { return doc.Desired }}
			if err := r.Apply(cmd.Context()); err != nil {
				return err
			}
			for _, addr := range addrs {
				fmt.Fprintf(a.Stdout, "Stopped %s.\n", addr)
			}
			return nil
		},
	}
	register.Config(&config, cmd)
	cmd.Flags().DurationVar(&flags.Timeout, "timeout", 10*time.Minute, "give up waiting after this `TIME`")
	cmd.Flags().DurationVar(&flags.LeaseTimeout, "lease-timeout", 0, "how long to wait for another process that is changing the stack")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "act on the stack of `DIR` (or of one file)")
	flags.Parallelism = 32
	return cmd
}

// hasEnded reports whether an address names jobs that have all ended, and reports that.
func hasEnded(a *terminal.Terminal, doc *state.Document, addr schema.Address) bool {
	var lines []string
	for _, job := range stack.SortedJobs(doc) {
		if !addr.Contains(job) {
			continue
		}
		j := doc.Jobs[job]
		if !j.Status.Ended() || j.Status == schema.JobScheduled {
			return false
		}
		lines = append(lines, fmt.Sprintf("%s has ended already (%s); nothing to stop.", job, j.Status))
	}
	for _, line := range lines {
		fmt.Fprintln(a.Stdout, line)
	}
	return len(lines) > 0
}
