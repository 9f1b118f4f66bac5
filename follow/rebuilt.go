package follow

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// withKeptLogs is a document whose jobs also have the attempts of which only logs are
// left: a state that was rebuilt records that a job has ended, and no attempt of it.
func (q *Query) withKeptLogs(ctx context.Context, s store.Store, doc *state.Document) (*state.Document, error) {
	out := doc
	for addr, j := range doc.Jobs {
		if !q.wants(addr) || !j.Status.Ended() || len(j.Attempts) > 0 || j.Attempt == 0 {
			continue
		}
		attempts, err := keptAttempts(ctx, s, j)
		if err != nil {
			return nil, err
		}
		if len(attempts) == 0 {
			continue
		}
		if out == doc {
			out = doc.Clone()
		}
		with := *j
		with.Attempts, with.Attempt = attempts, attempts[len(attempts)-1].Number
		out.Jobs[addr] = &with
	}
	return out, nil
}

// keptAttempts are the attempts of a job that left logs, oldest first. How they ended is
// not known, but for the last one, with which the job did.
func keptAttempts(ctx context.Context, s store.Store, j *state.Job) ([]state.Attempt, error) {
	prefix := store.LogsOfJob(j.ID)
	objects, err := s.List(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list logs of %s: %w", j.Spec.Addr, err)
	}
	tasks := map[int]int{} // by attempt
	for _, o := range objects {
		parts := strings.Split(strings.TrimPrefix(o.Key, prefix), "/")
		if len(parts) < 2 {
			continue
		}
		attempt, err1 := strconv.Atoi(parts[0])
		task, err2 := strconv.Atoi(parts[1])
		if err1 == nil && err2 == nil {
			tasks[attempt] = max(tasks[attempt], task+1)
		}
	}
	var attempts []state.Attempt
	for number, n := range tasks {
		a := state.Attempt{Number: number, Outcome: schema.TaskExitUnknown}
		if number == j.Attempt && j.Status == schema.JobSucceeded {
			a.Outcome = schema.TaskSucceeded
		}
		for range n {
			a.Tasks = append(a.Tasks, state.Task{State: a.Outcome, Started: true})
		}
		attempts = append(attempts, a)
	}
	slices.SortFunc(attempts, func(a, b state.Attempt) int { return a.Number - b.Number })
	return attempts, nil
}
