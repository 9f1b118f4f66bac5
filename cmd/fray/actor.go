package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/controller"
)

func actorCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "actor",
		Short: "List actors, call them, and see what they can do",
	}
	cmd.AddCommand(actorListCommand(a), actorCallCommand(a), actorDescribeCommand(a))
	return cmd
}

// actorFlags say of which stack an actor is, and in which namespace.
type actorFlags struct {
	config    configFlags
	dir       string
	namespace string
}

func (f *actorFlags) register(cmd *cobra.Command) {
	f.config.register(cmd)
	cmd.Flags().StringVar(&f.namespace, "namespace", "", "of the namespace `NAME` only")
	cmd.Flags().StringVarP(&f.dir, "chdir", "C", ".", "of the stack of `DIR` (or of one file)")
}

func actorListCommand(a *app) *cobra.Command {
	var flags actorFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "The actors of the stack, and where they listen",
		Long: `List the actors whose names begin with PREFIX: those that are registered (READY),
and those that a job is to host but that are not registered: CREATING before the
first time, RESTARTING after, FAILED once the job has ended. Several actors may
share a name; calls of it go to the newest.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.locate(cmd.Context(), []string{flags.dir}, flags.config)
			if err != nil {
				return err
			}
			actors, err := l.actors(cmd.Context(), flags.namespace, strings.Join(args, ""))
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(actors)
			}
			if len(actors) == 0 && (len(args) > 0 || flags.namespace != "") {
				_, err := fmt.Fprintln(a.stdout, "No such actors; without PREFIX and --namespace all are listed.")
				return err
			}
			return printActors(a.stdout, actors, time.Now())
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them as JSON")
	return cmd
}

// actors are those of a namespace, "" for all, whose names begin with a prefix.
func (l *loaded) actors(ctx context.Context, namespace, prefix string) ([]controller.Actor, error) {
	all, err := controller.Actors(ctx, l.stack.store, l.doc)
	if err != nil {
		return nil, err
	}
	found := []controller.Actor{}
	for i := range all {
		if (namespace == "" || all[i].Namespace == namespace) && strings.HasPrefix(all[i].Name, prefix) {
			found = append(found, all[i])
		}
	}
	return found, nil
}

func printActors(out io.Writer, actors []controller.Actor, now time.Time) error {
	if len(actors) == 0 {
		_, err := fmt.Fprintln(out, "No actors. Those of a job are listed once it was applied; they register while fray watch runs.")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NAMESPACE\tACTOR\tSTATUS\tADDRESS\tJOB\tATTEMPT\tFOR\tCLASS\tNOTE")
	for i := range actors {
		c := &actors[i]
		since := "-"
		if !c.Since.IsZero() {
			since = roundAge(now.Sub(c.Since))
		}
		job := c.Job.String()
		note := ""
		if c.Reason != "" {
			note = "\t" + c.Reason
		}
		if c.Task > 0 {
			job = fmt.Sprintf("%s task %d", job, c.Task)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s%s\n",
			c.Namespace, c.Name, c.Status, orDash(c.Address), job, c.Attempt, since, orDash(c.Metadata["class"]), note)
	}
	return w.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
