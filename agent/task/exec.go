package task

import (
	"context"
	"crypto/rand"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/container"
	"github.com/fray-ml/fray/agent/execution"
	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/sleep"
)

// containerPace is the time between two reads of the state of a container that starts.
const containerPace = 50 * time.Millisecond

// Exec makes a command that runs beside the task of what was asked for. A task that
// this agent took over knows its environment once the assignment was read. A failure
// is of a command that cannot be run; an error is of the call.
func (t *Task) Exec(ctx context.Context, start *clusterapi.ExecStart) (execution.Spec, *execution.Failure, error) {
	select {
	case <-t.runSeen:
	case <-t.done:
		return execution.Spec{}, nil, t.RunsNow()
	case <-ctx.Done():
		return execution.Spec{}, nil, status.FromContextError(ctx.Err()).Err()
	}
	spec := execution.Spec{Argv: start.GetCommand(), Nonce: rand.Text(), TTY: start.GetTty(), Size: start.GetSize()}
	if c := t.in.Container; c != nil {
		if err := t.awaitContainer(ctx); err != nil {
			return spec, nil, err
		}
		spec.Argv = container.ExecArgs(*c, spec.Argv, spec.Nonce, spec.TTY, start.GetTerm())
		spec.Path, spec.Dir, spec.Inside = c.Runtime, "/", true
		spec.Env = command.WithEntry(command.WithoutFray(os.Environ()), process.NonceEnv, spec.Nonce)
		return spec, nil, nil
	}
	env, err := t.environment()
	if err != nil {
		return spec, nil, status.Errorf(codes.FailedPrecondition, "make the task's environment: %v", err)
	}
	spec.Env = command.WithEntry(env, process.NonceEnv, spec.Nonce)
	if spec.TTY && start.GetTerm() != "" {
		spec.Env = command.WithEntry(spec.Env, "TERM", start.GetTerm())
	}
	spec.Dir = t.in.WorkDir
	if spec.Path, err = command.Find(spec.Argv[0], spec.Dir, command.Lookup(env, "PATH")); err != nil {
		return spec, &execution.Failure{Code: execution.NotFound, Reason: err.Error(), TTY: spec.TTY}, nil
	}
	return spec, nil, nil
}

// RunsNow returns why nothing can be run beside the task, or nil.
func (t *Task) RunsNow() error {
	switch {
	case t.over():
		return status.Errorf(codes.FailedPrecondition, "task %d of %s has ended; fray logs shows what it wrote", t.in.Task, t.in.Job)
	case !t.Started():
		return status.Errorf(codes.FailedPrecondition, "task %d of %s has not started yet; fray status shows what it waits for", t.in.Task, t.in.Job)
	}
	return nil
}

// over reports whether nothing of the task is left.
func (t *Task) over() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// awaitContainer returns once the task's container runs: that is a moment after
// its client does.
func (t *Task) awaitContainer(ctx context.Context) error {
	for !container.Running(ctx, *t.in.Container) {
		if err := t.RunsNow(); err != nil {
			return err
		}
		if !sleep.For(ctx, containerPace) {
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	return nil
}
