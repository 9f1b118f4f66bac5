package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
)

// startingInterval is the time between checks until the first success, so that
// whoever waits for a healthy task learns of it soon.
const startingInterval = 250 * time.Millisecond

// monitor judges a task by its health checks. It has no clock of its own.
type monitor struct {
	spec  schema.Health
	state state.HealthState
	// failures in a row that count, and since when the next may: until the
	// first success there are more checks than one per interval, and those
	// in between must not use the threshold up.
	failures int
	since    time.Time
}

// newMonitor goes on from a state, HealthStarting for a new task.
func newMonitor(spec schema.Health, started time.Time, health state.HealthState) *monitor {
	return &monitor{spec: spec, state: health, since: started.Add(time.Duration(spec.StartPeriod))}
}

// observe takes in the result of one check.
func (m *monitor) observe(now time.Time, err error) {
	if err == nil {
		m.failures, m.state = 0, state.HealthHealthy
		return
	}
	if m.state == state.HealthStarting && now.Sub(m.since) < time.Duration(m.spec.Interval) {
		return
	}
	m.since = now
	m.failures++
	if m.failures >= max(1, m.spec.Threshold) {
		m.state = state.HealthUnhealthy
	}
}

// wait is the time until the next check.
func (m *monitor) wait() time.Duration {
	interval := time.Duration(m.spec.Interval)
	if m.state == state.HealthStarting {
		return min(interval, startingInterval)
	}
	return interval
}

// watchHealth checks until ctx ends or the task is unhealthy, and tells of every
// change. The error that comes with HealthUnhealthy is the last check's.
func watchHealth(ctx context.Context, m *monitor, check func(context.Context) error, tell func(state.HealthState, error)) {
	for {
		before := m.state
		limited, cancel := context.WithTimeout(ctx, time.Duration(m.spec.Timeout))
		err := check(limited)
		cancel()
		if ctx.Err() != nil {
			return
		}
		m.observe(time.Now(), err)
		if m.state != before {
			tell(m.state, err)
		}
		if m.state == state.HealthUnhealthy || !sleep.For(ctx, m.wait()) {
			return
		}
	}
}

// lastHealth is the task's health as an earlier agent left it: a task does not
// become unready because its agent was started again.
func (t *task) lastHealth() state.HealthState {
	health := state.HealthStarting
	if err := readRecord(t.dir.file(healthFile), &health); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.agent.Log.Error("health not remembered", "error", err)
	}
	return health
}

// checkHealth watches the task's health until ctx ends.
func (t *task) checkHealth(ctx context.Context, started time.Time) {
	select {
	case <-ctx.Done():
		return
	case <-t.runSeen:
	}
	spec := t.run.Spec.HealthCheck
	if spec == nil {
		return
	}
	check := t.prober(*spec)
	watchHealth(ctx, newMonitor(*spec, started, t.lastHealth()), check, func(health state.HealthState, err error) {
		if err := writeRecord(t.dir.file(healthFile), health); err != nil {
			t.agent.Log.Error("health not remembered", "error", err)
		}
		t.set(func(r *state.TaskReport) { r.Health = health })
		if health == state.HealthUnhealthy {
			times := "once"
			if n := spec.Threshold; n > 1 {
				times = fmt.Sprintf("%d times", n)
			}
			t.stop(schema.TaskFailed, fmt.Sprintf("health check failed %s: %v", times, err))
		}
	})
}
