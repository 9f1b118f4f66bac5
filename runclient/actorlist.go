package runclient

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/controller/actors"
	"github.com/fray-ml/fray/terminal"
)

// ActorOptions say of which stack an actor is, and in which namespace.
type ActorOptions struct {
	Configuration configuration.Options
	Dir           string
	Namespace     string
}

// ListActors are those of a namespace, "" for all, whose names begin with a prefix.
func ListActors(ctx context.Context, l *configuration.Loaded, namespace, prefix string) ([]actors.Actor, error) {
	all, err := actors.List(ctx, l.Stack.Store, l.Document)
	if err != nil {
		return nil, err
	}
	found := []actors.Actor{}
	for i := range all {
		if (namespace == "" || all[i].Namespace == namespace) && strings.HasPrefix(all[i].Name, prefix) {
			found = append(found, all[i])
		}
	}
	return found, nil
}

// PrintActors prints a table of actors.
func PrintActors(out io.Writer, actors []actors.Actor, now time.Time) error {
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
			since = terminal.RoundAge(now.Sub(c.Since))
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
			c.Namespace, c.Name, c.Status, terminal.OrDash(c.Address), job, c.Attempt, since, terminal.OrDash(c.Metadata["class"]), note)
	}
	return w.Flush()
}
