package hostapi

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/agent/execution"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/agent/task"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/sleep"
)

// maxExecs is how many commands a host runs at once besides its tasks.
const maxExecs = 16

// Exec runs a command beside a task: in its environment, its directory and its
// container. What the command starts ends with the call, and the call with the task.
func (h *Service) Exec(stream execution.Stream) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	start := first.GetStart()
	if start.GetProfile() == nil && (len(start.GetCommand()) == 0 || start.GetCommand()[0] == "") {
		return status.Error(codes.InvalidArgument, "the first message must have start.command, a command and its arguments, or start.profile")
	}
	select {
	case h.execs <- struct{}{}:
		defer func() { <-h.execs }()
	default:
		return status.Errorf(codes.ResourceExhausted, "%d commands run on this host besides its tasks, which is all it takes; end one of them", maxExecs)
	}
	t, err := h.live.find(start.GetJobId(), int(start.GetTask()))
	if err != nil {
		return err
	}
	if err := t.RunsNow(); err != nil {
		return err
	}
	if start.GetProfile() != nil {
		spec, err := task.Profiler(stream.Context(), t, start)
		if err != nil {
			return err
		}
		return h.execute(stream, t, spec, profileGrace)
	}
	spec, early, err := t.Exec(stream.Context(), start)
	if err != nil {
		return err
	}
	if early != nil {
		return early.Send(stream)
	}
	return h.execute(stream, t, spec, 0)
}

// profileGrace is how long a profiler has, after the task's end, to send what it has measured.
const profileGrace = 10 * time.Second

// execute runs a command to its end, or to that of the call, or to a grace after that of the task.
func (h *Service) execute(stream execution.Stream, t *task.Task, spec execution.Spec, grace time.Duration) error {
	mark := filepath.Join(h.dir.File(hostdir.ExecsDir), spec.Nonce)
	if err := errors.Join(os.MkdirAll(filepath.Dir(mark), 0o700), os.WriteFile(mark, nil, 0o600)); err != nil {
		return status.Errorf(codes.Unavailable, "record the command: %v", err)
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	go func() {
		select {
		case <-t.Done():
			if sleep.For(ctx, grace) {
				cancel(errTaskEnded)
			}
		case <-ctx.Done():
		}
	}()
	code, err := execution.Run(ctx, spec, stream)
	if removed := os.Remove(mark); removed != nil {
		h.log.Warn("record of a command not removed", "error", removed)
	}
	switch {
	case errors.Is(context.Cause(ctx), errTaskEnded):
		return status.Errorf(codes.Aborted, "task %d of %s has ended, and the command with it", t.Name().Index, t.Name().Job)
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case err != nil:
		return status.Errorf(codes.Unavailable, "run the command: %v", err)
	}
	return stream.Send(&clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_ExitCode{ExitCode: int32(code)}})
}

var errTaskEnded = errors.New("the task has ended")

// endExecs ends what commands of an earlier agent have left.
func endExecs(d *hostdir.Dir) error {
	entries, err := os.ReadDir(d.File(hostdir.ExecsDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, process.Sweep(process.Traces{Nonce: e.Name()}), os.Remove(filepath.Join(d.File(hostdir.ExecsDir), e.Name())))
	}
	return err
}
