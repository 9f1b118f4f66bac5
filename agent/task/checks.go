package task

import (
	"context"
	"fmt"
	"time"

	"github.com/fray-ml/fray/agent/health"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/outcome"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// checkHealth watches the task's health until ctx ends.
func (s *supervision) checkHealth(ctx context.Context, started time.Time) {
	select {
	case <-ctx.Done():
		return
	case <-s.task.runSeen:
	}
	spec := s.task.run.Spec.HealthCheck
	if spec == nil {
		return
	}
	target := health.Target{
		Address: s.task.host.Address, Simulated: s.task.host.Simulated, Ports: s.task.in.Ports, Declared: s.task.run.Spec.Resources.Ports,
		Command: s.task.command,
	}
	health.Watch(ctx, health.NewMonitor(*spec, started, s.task.lastHealth()), target.Check(*spec), func(now state.HealthState, err error) {
		if err := record.Write(s.task.dir.File(hostdir.HealthFile), now); err != nil {
			s.task.host.Log.Error("health not remembered", "error", err)
		}
		s.task.set(func(r *state.TaskReport) {
			r.Health, r.Reason = now, ""
			if now == state.HealthStarting {
				r.Reason = err.Error()
			}
		})
		if now == state.HealthUnhealthy {
			times := "once"
			if n := spec.Threshold; n > 1 {
				times = fmt.Sprintf("%d times", n)
			}
			s.task.Stop(outcome.StopCause{State: schema.TaskFailed, Reason: fmt.Sprintf("health check failed %s: %v", times, err)})
		}
	})
}
