package health

import (
	"context"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
)

// startingInterval is the time between checks until the first success, so that
// clients that wait for a healthy task learn of it soon.
const startingInterval = 250 * time.Millisecond

// Monitor judges a task by its health checks. It has no clock of its own.
type Monitor struct {
	spec  schema.Health
	state state.HealthState
	// failures in a row that count, and since when the next may: until the
	// first success there are more checks than one per interval, and those
	// in between must not use the threshold up.
	failures int
	since    time.Time
}

// NewMonitor goes on from a state, HealthStarting for a new task.
func NewMonitor(spec schema.Health, started time.Time, health state.HealthState) *Monitor {
	return &Monitor{spec: spec, state: health, since: started.Add(time.Duration(spec.StartPeriod))}
}

// observe takes in the result of one check.
func (m *Monitor) observe(now time.Time, err error) {
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
func (m *Monitor) wait() time.Duration {
	interval := time.Duration(m.spec.Interval)
	if m.state == state.HealthStarting {
		return min(interval, startingInterval)
	}
	return interval
}

// A task that is starting for so long is reported with the error of its check, and again after
// each such time.
const explainedEvery = 10 * time.Second

// Watch checks until ctx ends or the task is unhealthy, and reports every change. The error
// that comes with HealthUnhealthy is the last check's, and so is that of a task which is
// starting for long.
func Watch(ctx context.Context, m *Monitor, check func(context.Context) error, report func(state.HealthState, error)) {
	due := time.Now().Add(explainedEvery)
	for {
		before := m.state
		limited, cancel := context.WithTimeout(ctx, time.Duration(m.spec.Timeout))
		err := check(limited)
		cancel()
		if ctx.Err() != nil {
			return
		}
		m.observe(time.Now(), err)
		switch now := time.Now(); {
		case m.state != before:
			report(m.state, err)
		case m.state == state.HealthStarting && !now.Before(due):
			due = now.Add(explainedEvery)
			report(m.state, err)
		}
		if m.state == state.HealthUnhealthy || !sleep.For(ctx, m.wait()) {
			return
		}
	}
}
