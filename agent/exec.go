package agent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/sleep"
)

// maxExecs is how many commands a host runs at once besides its tasks.
const maxExecs = 16

// containerPace is how often a container that starts is looked at.
const containerPace = 50 * time.Millisecond

// exitNotFound is the exit code of a command that could not be run, as shells have it.
const exitNotFound = 127

// Exec runs a command beside a task: in its environment, its directory and its
// container. What the command starts ends with the call, and the call with the task.
func (h *hostService) Exec(stream grpc.BidiStreamingServer[clusterapi.ExecRequest, clusterapi.ExecResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	start := first.GetStart()
	if start == nil || len(start.GetCommand()) == 0 || start.GetCommand()[0] == "" {
		return status.Error(codes.InvalidArgument, "the first message must have start.command: the words of a command")
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
	if err := t.runsNow(); err != nil {
		return err
	}
	spec, early, err := t.execSpec(stream.Context(), start)
	if err != nil {
		return err
	}
	if early != nil {
		return early.send(stream)
	}
	return h.execute(stream, t, spec)
}

// execute runs a command to its end, or to that of the call or of the task.
func (h *hostService) execute(stream grpc.BidiStreamingServer[clusterapi.ExecRequest, clusterapi.ExecResponse], t *task, spec execSpec) error {
	mark := filepath.Join(h.dir.file(execsDir), spec.nonce)
	if err := errors.Join(os.MkdirAll(filepath.Dir(mark), 0o700), os.WriteFile(mark, nil, 0o600)); err != nil {
		return status.Errorf(codes.Unavailable, "record the command: %v", err)
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	go func() {
		select {
		case <-t.done:
			cancel(errTaskEnded)
		case <-ctx.Done():
		}
	}()
	code, err := (&execution{spec: spec, stream: stream}).run(ctx)
	if removed := os.Remove(mark); removed != nil {
		h.log.Warn("record of a command not removed", "error", removed)
	}
	switch {
	case errors.Is(context.Cause(ctx), errTaskEnded):
		return status.Errorf(codes.Aborted, "task %d of %s has ended, and the command with it", t.in.Task, t.in.Job)
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case err != nil:
		return status.Errorf(codes.Unavailable, "run the command: %v", err)
	}
	return stream.Send(&clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_ExitCode{ExitCode: int32(code)}})
}

var errTaskEnded = errors.New("the task has ended")

// runsNow says why nothing can be run beside a task, or nil.
func (t *task) runsNow() error {
	switch {
	case t.over():
		return status.Errorf(codes.FailedPrecondition, "task %d of %s has ended; fray logs shows what it wrote", t.in.Task, t.in.Job)
	case !t.started():
		return status.Errorf(codes.FailedPrecondition, "task %d of %s has not started yet; fray status says what it waits for", t.in.Task, t.in.Job)
	}
	return nil
}

// execSpec is a command as it is to be started.
type execSpec struct {
	path      string
	argv, env []string
	dir       string
	nonce     string // of all its processes
	tty       bool
	size      *clusterapi.WindowSize
	// inside says that the command is the client of a container's runtime,
	// which hands on no signals.
	inside bool
}

// failure is the end of a command that was never begun, told as a shell would.
type failure struct {
	code int
	why  string
	tty  bool // it is told on a terminal
}

func (f *failure) send(stream grpc.BidiStreamingServer[clusterapi.ExecRequest, clusterapi.ExecResponse]) error {
	end := "\n"
	if f.tty { // whose driver would have made that of it
		end = "\r\n"
	}
	err := stream.Send(&clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_Stderr{Stderr: []byte("fray: " + f.why + end)}})
	if err != nil {
		return err
	}
	return stream.Send(&clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_ExitCode{ExitCode: int32(f.code)}})
}

// execSpec makes a command of what was asked for. A task that this agent took
// over knows its environment once the assignment was read.
func (t *task) execSpec(ctx context.Context, start *clusterapi.ExecStart) (execSpec, *failure, error) {
	select {
	case <-t.runSeen:
	case <-t.done:
		return execSpec{}, nil, t.runsNow()
	case <-ctx.Done():
		return execSpec{}, nil, status.FromContextError(ctx.Err()).Err()
	}
	spec := execSpec{argv: start.GetCommand(), nonce: rand.Text(), tty: start.GetTty(), size: start.GetSize()}
	if t.in.Container != nil {
		if err := t.awaitContainer(ctx); err != nil {
			return spec, nil, err
		}
		return t.in.Container.execSpec(spec, start.GetTerm()), nil, nil
	}
	env, err := t.environment()
	if err != nil {
		return spec, nil, status.Errorf(codes.FailedPrecondition, "make the task's environment: %v", err)
	}
	spec.env = withEntry(env, nonceEnv, spec.nonce)
	if spec.tty && start.GetTerm() != "" {
		spec.env = withEntry(spec.env, "TERM", start.GetTerm())
	}
	spec.dir = t.in.WorkDir
	if spec.path, err = findProgram(spec.argv[0], spec.dir, lookupEnv(env, "PATH")); err != nil {
		return spec, &failure{code: exitNotFound, why: err.Error(), tty: spec.tty}, nil
	}
	return spec, nil, nil
}

// awaitContainer returns once the task's container runs: that is a moment after
// its client does.
func (t *task) awaitContainer(ctx context.Context) error {
	for {
		output, err := runtimeOutput(ctx, t.in.Container.Runtime, "container", "inspect", "--format", "{{json .State}}", t.in.Container.Name)
		var state struct{ Running bool }
		if err == nil && json.Unmarshal([]byte(output), &state) == nil && state.Running {
			return nil
		}
		if err := t.runsNow(); err != nil {
			return err
		}
		if !sleep.For(ctx, containerPace) {
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

// execSpec is a command in the task's container, run by the runtime's client.
// The nonce marks its processes there, which outlive their client.
func (c *container) execSpec(spec execSpec, term string) execSpec {
	argv := []string{c.Runtime, "exec", "--interactive", "--env", nonceEnv + "=" + spec.nonce}
	if spec.tty {
		argv = append(argv, "--tty")
		if term != "" {
			argv = append(argv, "--env", "TERM="+term)
		}
	}
	spec.argv = slices.Concat(argv, []string{c.Name}, spec.argv)
	spec.path, spec.dir, spec.inside = c.Runtime, "/", true
	spec.env = withEntry(withoutFray(os.Environ()), nonceEnv, spec.nonce)
	return spec
}

// withEntry is an environment with one variable set.
func withEntry(env []string, name, value string) []string {
	kept := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		return len(entry) > len(name) && entry[len(name)] == '=' && entry[:len(name)] == name
	})
	return append(kept, name+"="+value)
}

// endExecs ends what commands of an earlier agent have left.
func (d *hostDir) endExecs() error {
	entries, err := os.ReadDir(d.file(execsDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, sweep(processRecord{}, e.Name()), os.Remove(filepath.Join(d.file(execsDir), e.Name())))
	}
	return err
}
