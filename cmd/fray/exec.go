package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func execCommand(a *app) *cobra.Command {
	var config configFlags
	var q execQuery
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
				q.tty = q.interactive && isTerminal(a.stdin) && isTerminal(a.stdout)
			}
			q.command = args[1:]
			l, err := a.locate(cmd.Context(), []string{dir}, config)
			if err != nil {
				return err
			}
			addrs, err := l.addresses("exec", args[:1])
			if err != nil {
				return err
			}
			return a.exec(cmd.Context(), l, addrs[0], q)
		},
	}
	config.register(cmd)
	cmd.Flags().IntVar(&q.task, "task", 0, "on the host of task `N`")
	cmd.Flags().BoolVarP(&q.interactive, "interactive", "i", true, "hand on what is typed")
	cmd.Flags().BoolVarP(&q.tty, "tty", "t", false, "give it a terminal; without the flag, if fray is on one")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "of the stack of `DIR` (or of one file)")
	return cmd
}

type execQuery struct {
	task             int
	interactive, tty bool
	command          []string
}

// exec runs a command beside a task; its exit code comes as an exit.
func (a *app) exec(ctx context.Context, l *loaded, addr schema.Address, q execQuery) error {
	view, err := l.look(ctx)
	if err != nil {
		return err
	}
	job, err := theJob(view.doc, addr)
	if err != nil {
		return err
	}
	t, err := runningTask(view.doc.Jobs[job], job, q.task)
	if err != nil {
		return err
	}
	link, err := l.toHost(ctx, t)
	if err != nil {
		return err
	}
	defer link.close()
	s := &execSession{app: a, link: link, query: q, job: view.doc.Jobs[job].ID}
	code, err := s.run(ctx)
	if err == nil && code != 0 {
		err = &exit{code: code}
	}
	return err
}

// theJob is the one job instance that an address names.
func theJob(doc *state.Document, addr schema.Address) (schema.Address, error) {
	var found []schema.Address
	for _, job := range sortedJobs(doc) {
		if addr.Contains(job) {
			found = append(found, job)
		}
	}
	switch len(found) {
	case 0:
		return addr, fmt.Errorf("fray exec: %s has no job that runs; fray apply starts what is declared", addr)
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
	return addr, fmt.Errorf("fray exec: %s names %d jobs; choose one of %s", addr, len(found), strings.Join(names, ", "))
}

// execTask is the task beside which a command is to run.
type execTask struct {
	job    schema.Address
	index  int
	slice  string
	host   int
	places string // of all tasks of the attempt, for people
}

// runningTask is a task of the attempt that runs.
func runningTask(j *state.Job, addr schema.Address, index int) (execTask, error) {
	status := "fray status " + shellWord(addr.String())
	attempt := j.Last()
	switch {
	case j.Status.Ended():
		return execTask{}, fmt.Errorf("%s has ended (%s), so there is no task to run a command beside; fray logs shows what it wrote", addr, j.Status)
	case attempt == nil || attempt.Outcome != "":
		return execTask{}, fmt.Errorf("%s runs no attempt now; %s says what it waits for", addr, status)
	}
	var places []string
	for i, t := range attempt.Tasks {
		places = append(places, fmt.Sprintf("%d on host %d of slice %s (%s)", i, t.Host, t.Slice, t.State))
	}
	t := execTask{job: addr, index: index, places: strings.Join(places, ", ")}
	if index < 0 || index >= len(attempt.Tasks) {
		return t, fmt.Errorf("%s has no task %d; its tasks are %s", addr, index, t.places)
	}
	t.slice, t.host = attempt.Tasks[index].Slice, attempt.Tasks[index].Host
	return t, nil
}
