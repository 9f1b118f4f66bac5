package task

import (
	"context"
	"net"
	"strconv"

	"github.com/fray-ml/fray/agent/container"
	"github.com/fray-ml/fray/agent/usage"
	"github.com/fray-ml/fray/schema"
)

// Measured is the task for a sampler of what it uses; false unless it runs.
func (t *Task) Measured(ctx context.Context) (usage.Task, bool) {
	shim := int(t.shim.Load())
	if shim == 0 || t.Report().State != schema.TaskRunning {
		return usage.Task{}, false
	}
	out := usage.Task{Slice: t.host.Slice, Key: t.in.Key, Roots: []int{shim}, TPU: t.in.TPU && !t.host.Simulated}
	if port := t.in.Ports[schema.ActorPort]; port > 0 && t.in.Actor {
		out.Actors = net.JoinHostPort(t.host.Address, strconv.Itoa(port))
	}
	if c := t.in.Container; c != nil {
		if t.contained.Load() == 0 {
			t.contained.Store(int64(container.PID(ctx, *c)))
		}
		out.Container = int(t.contained.Load())
	}
	return out, true
}
