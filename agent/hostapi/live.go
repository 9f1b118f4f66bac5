package hostapi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/agent/task"
	"github.com/fray-ml/fray/agent/usage"
)

// Live has the last tasks of the slices that this process serves; safe for
// concurrent use.
type Live struct {
	mu    sync.Mutex
	tasks map[string]*task.Task // by slice
}

func newLive() *Live { return &Live{tasks: map[string]*task.Task{}} }

// Set makes t the last task of a slice.
func (l *Live) Set(slice string, t *task.Task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks[slice] = t
}

// find returns a task of a job by the job's id and its index; an error lists
// what there is instead.
func (l *Live) find(job string, index int) (*task.Task, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var others []string
	for _, t := range l.tasks {
		name := t.Name()
		if name.JobID == job && name.Index == index {
			return t, nil
		}
		others = append(others, fmt.Sprintf("task %d of %s", name.Index, name.Job))
	}
	if len(others) == 0 {
		return nil, status.Errorf(codes.NotFound, "this host has run no task yet, so not task %d of job %s", index, job)
	}
	slices.Sort(others)
	return nil, status.Errorf(codes.NotFound, "this host runs no task %d of job %s; it has %s", index, job, others)
}

// Running are the tasks that run, as a sampler of their usage needs them.
func (l *Live) Running(ctx context.Context) []usage.Task {
	l.mu.Lock()
	tasks := slices.Collect(maps.Values(l.tasks))
	l.mu.Unlock()
	var out []usage.Task
	for _, t := range tasks {
		if measured, ok := t.Measured(ctx); ok {
			out = append(out, measured)
		}
	}
	return out
}

// Drop forgets the task of a slice that is served no more.
func (l *Live) Drop(slice string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tasks, slice)
}
