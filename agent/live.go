package agent

import (
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// liveTasks are the last tasks of the slices that this process serves; safe for
// concurrent use.
type liveTasks struct {
	mu    sync.Mutex
	tasks map[string]*task // by slice
}

func newLiveTasks() *liveTasks { return &liveTasks{tasks: map[string]*task{}} }

func (l *liveTasks) set(slice string, t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks[slice] = t
}

// find returns a task of a job by the job's id and its index; an error says
// what there is instead.
func (l *liveTasks) find(job string, index int) (*task, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var others []string
	for _, t := range l.tasks {
		if t.in.JobID == job && t.in.Task == index {
			return t, nil
		}
		others = append(others, fmt.Sprintf("task %d of %s", t.in.Task, t.in.Job))
	}
	if len(others) == 0 {
		return nil, status.Errorf(codes.NotFound, "this host has run no task yet, so not task %d of job %s", index, job)
	}
	slices.Sort(others)
	return nil, status.Errorf(codes.NotFound, "this host runs no task %d of job %s; it has %s", index, job, others)
}

// over reports whether nothing of the task is left.
func (t *task) over() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}
