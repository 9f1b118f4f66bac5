package task

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/container"
	"github.com/fray-ml/fray/agent/execution"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/agent/profiler"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/profile"
)

// ProfilerCommand is the verb of the agent's program that carries a profiler's order out.
const ProfilerCommand = "task-profiler"

// Profiler makes a command that measures a task as was asked for.
func Profiler(ctx context.Context, t *Task, start *clusterapi.ExecStart) (execution.Spec, error) {
	order, err := orderOf(start.GetProfile())
	if err != nil {
		return execution.Spec{}, err
	}
	select {
	case <-t.runSeen:
	case <-t.done:
		return execution.Spec{}, t.RunsNow()
	case <-ctx.Done():
		return execution.Spec{}, status.FromContextError(ctx.Err()).Err()
	}
	var running hostdir.ProcessRecord
	if err := record.Read(t.dir.File(hostdir.ProcessFile), &running); err != nil {
		return execution.Spec{}, status.Errorf(codes.FailedPrecondition, "task %d of %s has no process yet: %v", t.in.Task, t.in.Job, err)
	}
	order.Session, order.Group, order.Nonce = running.Shim, running.PID, t.in.Nonce
	order.Sockets, order.CacheDir = t.dir.File(hostdir.ProfilesDir), t.host.CacheDir
	if port := t.in.Ports[profiler.PprofPort]; port > 0 {
		order.Address = net.JoinHostPort(t.host.Address, strconv.Itoa(port))
	}
	if c := t.in.Container; c != nil {
		if err := t.awaitContainer(ctx); err != nil {
			return execution.Spec{}, err
		}
		if order.Container = container.PID(ctx, *c); order.Container == 0 {
			return execution.Spec{}, status.Errorf(codes.Unavailable, "%s does not name the process of the task's container", c.Runtime)
		}
	} else {
		env, err := t.environment()
		if err != nil {
			return execution.Spec{}, status.Errorf(codes.FailedPrecondition, "make the task's environment: %v", err)
		}
		order.Path = command.Lookup(env, "PATH")
	}
	text, err := json.Marshal(order)
	if err != nil {
		return execution.Spec{}, status.Errorf(codes.Internal, "write the profiler's order: %v", err)
	}
	spec := execution.Spec{Path: t.host.Executable, Argv: []string{t.host.Executable, ProfilerCommand, string(text)}, Nonce: rand.Text(), Dir: "/"}
	spec.Env = command.WithEntry(command.WithoutFray(os.Environ()), process.NonceEnv, spec.Nonce)
	return spec, nil
}

// orderOf reads what a caller asks for, with defaults for what it leaves out.
func orderOf(asked *clusterapi.Profile) (profiler.Order, error) {
	order := profiler.Order{Duration: profiler.DefaultDuration, PID: int(asked.GetPid()), Rate: profiler.DefaultRate}
	switch asked.GetKind() {
	case clusterapi.ProfileKind_PROFILE_KIND_UNSPECIFIED, clusterapi.ProfileKind_PROFILE_KIND_CPU:
		order.Kind = profile.CPU
	case clusterapi.ProfileKind_PROFILE_KIND_MEMORY:
		order.Kind = profile.Memory
	case clusterapi.ProfileKind_PROFILE_KIND_STACKS:
		order.Kind = profile.Stacks
	default:
		return order, status.Errorf(codes.InvalidArgument, "this host's agent knows no profile of kind %d; it has cpu, memory and stacks", asked.GetKind())
	}
	if asked.GetDuration() != nil {
		order.Duration = asked.GetDuration().AsDuration()
	}
	if asked.GetRate() != 0 {
		order.Rate = int(asked.GetRate())
	}
	switch {
	case order.Duration < time.Second || order.Duration > profiler.MaxDuration:
		return order, status.Errorf(codes.InvalidArgument, "the duration is %s, want 1s to %s", order.Duration, profiler.MaxDuration)
	case order.Rate < 1 || order.Rate > profiler.MaxRate:
		return order, status.Errorf(codes.InvalidArgument, "the rate is %d samples in a second, want 1 to %d", order.Rate, profiler.MaxRate)
	case order.PID < 0:
		return order, status.Errorf(codes.InvalidArgument, "the process is %d, want the id of one", order.PID)
	}
	return order, nil
}
