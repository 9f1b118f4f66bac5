package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/runclient"
	"github.com/fray-ml/fray/terminal"
)

func actorCommand(a *terminal.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "actor",
		Short: "List actors, call them, and see what they can do",
	}
	cmd.AddCommand(actorListCommand(a), actorCallCommand(a), actorDescribeCommand(a))
	return cmd
}

func registerActor(f *runclient.ActorOptions, cmd *cobra.Command) {
	register.Config(&f.Configuration, cmd)
	cmd.Flags().StringVar(&f.Namespace, "namespace", "", "of the namespace `NAME` only")
	cmd.Flags().StringVarP(&f.Dir, "chdir", "C", ".", "of the stack of `DIR` (or of one file)")
}

func actorListCommand(a *terminal.Terminal) *cobra.Command {
	var flags runclient.ActorOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "The actors of the stack, and where they listen",
		Long: `List the actors whose names begin with PREFIX: those that are registered (READY),
and those that a job is to host but that are not registered: CREATING before the
first time, RESTARTING after, STOPPING while the job is being stopped for good, FAILED
once it has failed for good. Actors that were deleted, or are done, are not listed. Several actors may share a name; calls
of it go to the newest.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := configuration.Locate(cmd.Context(), a, []string{flags.Dir}, flags.Configuration)
			if err != nil {
				return err
			}
			actors, err := runclient.ListActors(cmd.Context(), l, flags.Namespace, strings.Join(args, ""))
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(actors)
			}
			if len(actors) == 0 && (len(args) > 0 || flags.Namespace != "") {
				_, err := fmt.Fprintln(a.Stdout, "No such actors; without PREFIX and --namespace all are listed.")
				return err
			}
			return runclient.PrintActors(a.Stdout, actors, time.Now())
		},
	}
	registerActor(&flags, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them as JSON")
	return cmd
}
