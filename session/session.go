package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/status"
	"github.com/fray-ml/fray/terminal"
)

// verb is the verb of a command line, for its errors.
type verb string

const (
	execVerb    verb = "fray exec"
	profileVerb verb = "fray profile"
)

// Query is a command, and the task beside which it runs.
type Query struct {
	Task             int
	Interactive, Tty bool
	Command          []string
}

// Run runs a command beside a task; its exit code comes as an exit.
func Run(ctx context.Context, a *terminal.Terminal, l *configuration.Loaded, addr schema.Address, q Query) error {
	view, err := status.Read(ctx, l)
	if err != nil {
		return err
	}
	job, err := theJob(view.Doc, addr, execVerb)
	if err != nil {
		return err
	}
	t, err := runningTask(view.Doc.Jobs[job], job, q.Task)
	if err != nil {
		return err
	}
	link, err := toHost(ctx, l, t)
	if err != nil {
		return err
	}
	defer link.close()
	s := &execSession{terminal: a, link: link, query: q, start: &clusterapi.ExecStart{
		JobId: view.Doc.Jobs[job].ID, Task: int32(q.Task), Command: q.Command, Tty: q.Tty,
	}}
	code, err := s.run(ctx)
	if err == nil && code != 0 {
		err = &terminal.Exit{Code: code}
	}
	return err
}

// theJob is the one job instance that an address names.
func theJob(doc *state.Document, addr schema.Address, of verb) (schema.Address, error) {
	var found []schema.Address
	for _, job := range stack.SortedJobs(doc) {
		if addr.Contains(job) {
			found = append(found, job)
		}
	}
	switch len(found) {
	case 0:
		return addr, fmt.Errorf("%s: %s has no job that runs; fray apply starts what is declared", of, addr)
	case 1:
		return found[0], nil
	}
	const most = 8
	var names []string
	for _, job := range found[:min(most, len(found))] {
		names = append(names, job.String())
	}
	if len(found) > most {
		names = append(names, "…")
	}
	return addr, fmt.Errorf("%s: %s names %d jobs; choose one of %s", of, addr, len(found), strings.Join(names, ", "))
}

// Task is the task beside which a command is to run.
type Task struct {
	job    schema.Address
	index  int
	slice  string
	host   int
	places string // of all tasks of the attempt, for people
}

// runningTask is a task of the attempt that runs.
func runningTask(j *state.Job, addr schema.Address, index int) (Task, error) {
	status := "fray status " + terminal.ShellQuote(addr.String())
	attempt := j.Last()
	switch {
	case j.Status.Ended():
		return Task{}, fmt.Errorf("%s has ended (%s), so there is no task to run a command beside; fray logs shows what it wrote", addr, j.Status)
	case attempt == nil || attempt.Outcome != "":
		return Task{}, fmt.Errorf("%s runs no attempt now; see %s for what it waits for", addr, status)
	}
	var places []string
	for i, t := range attempt.Tasks {
		places = append(places, fmt.Sprintf("%d on host %d of slice %s (%s)", i, t.Host, t.Slice, t.State))
	}
	t := Task{job: addr, index: index, places: strings.Join(places, ", ")}
	if index < 0 || index >= len(attempt.Tasks) {
		return t, fmt.Errorf("%s has no task %d; its tasks are %s", addr, index, t.places)
	}
	t.slice, t.host = attempt.Tasks[index].Slice, attempt.Tasks[index].Host
	return t, nil
}
