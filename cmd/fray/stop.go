package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func stopCommand(a *app) *cobra.Command {
	flags := applyFlags{wait: waitReady}
	var config configFlags
	var dir string
	cmd := &cobra.Command{
		Use:   "stop ADDR...",
		Short: "End jobs and keep them from starting again",
		Long: `End jobs and free what they run on. They stay declared and stopped until their
configuration changes or fray apply --replace=ADDR starts them again. What has
ended already is named and left as it is.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.locate(cmd.Context(), []string{dir}, config)
			if err != nil {
				return err
			}
			addrs, err := l.addresses("stop", args)
			if err != nil {
				return err
			}
			view, err := l.look(cmd.Context())
			if err != nil {
				return err
			}
			addrs = slices.DeleteFunc(addrs, func(addr schema.Address) bool { return a.ended(view.doc, addr) })
			if len(addrs) == 0 {
				return nil
			}
			flags.autoApprove = true
			r := &runner{app: a, flags: &flags, l: l, stopping: true}
			r.c = &change{keeps: true, stop: addrs, desired: func(doc *state.Document) schema.Desired { return doc.Desired }}
			if err := r.apply(cmd.Context()); err != nil {
				return err
			}
			for _, addr := range addrs {
				fmt.Fprintf(a.stdout, "Stopped %s.\n", addr)
			}
			return nil
		},
	}
	config.register(cmd)
	cmd.Flags().DurationVar(&flags.timeout, "timeout", 10*time.Minute, "give up waiting after this `TIME`")
	cmd.Flags().DurationVar(&flags.leaseTimeout, "lease-timeout", 0, "how long to wait for somebody else who is changing the stack")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "act on the stack of `DIR` (or of one file)")
	flags.parallelism = 32
	return cmd
}

// ended reports whether an address names jobs that have all ended, and says so.
func (a *app) ended(doc *state.Document, addr schema.Address) bool {
	var lines []string
	for _, job := range sortedJobs(doc) {
		if !addr.Contains(job) {
			continue
		}
		j := doc.Jobs[job]
		if !j.Status.Ended() {
			return false
		}
		lines = append(lines, fmt.Sprintf("%s has ended already (%s); nothing to stop.", job, j.Status))
	}
	for _, line := range lines {
		fmt.Fprintln(a.stdout, line)
	}
	return len(lines) > 0
}
