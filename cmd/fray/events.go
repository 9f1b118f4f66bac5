package main

import (
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/events"
	"github.com/fray-ml/fray/terminal"
)

func eventsCommand(a *terminal.Terminal) *cobra.Command {
	var flags configuration.Options
	var follow, asJSON bool
	var since time.Duration
	var kinds []string
	var dir string
	cmd := &cobra.Command{
		Use:   "events [ADDR...]",
		Short: "What happened, oldest first",
		Long: `Print what happened to the stack, or to what the addresses name: attempts that
began and ended and why, slices that were asked for, came up and went, what waited
for what, who led. Watches and applies keep the last 10 MiB of that in the
stack's store. With -f new ones are printed as they come.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := configuration.Locate(cmd.Context(), a, []string{dir}, flags)
			if err != nil {
				return err
			}
			wanted, err := events.Filter(args, kinds, since)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return events.Print(ctx, a, events.Reader(l.Stack.Store, args, since), events.Options{Wanted: wanted, Follow: follow, JSON: asJSON})
		},
	}
	register.Config(&flags, cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print new ones as they come, until Ctrl-C")
	cmd.Flags().BoolVar(&asJSON, "json", false, "a line of JSON for each: at, kind, address, slice, level, text, and of a slice in a cloud what became of it")
	cmd.Flags().DurationVar(&since, "since", 0, "only those of the last `TIME`, such as 1h")
	cmd.Flags().StringSliceVar(&kinds, "kind", nil, "only those of these `KINDS`: "+strings.Join(events.EventKinds(), ", "))
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "of the stack of `DIR` (or of one file)")
	return cmd
}
