package agent

import (
	"cmp"
	"context"
	"time"

	"github.com/fray-ml/fray/sleep"
)

func (t *task) shipper() *shipper {
	return &shipper{
		store: t.agent.Store, job: cmp.Or(t.in.JobID, t.in.Job.String()), attempt: t.in.Attempt, task: t.in.Task,
		path: t.dir.file(outputFile),
	}
}

// shipAlways copies the task's output to the store while it runs. The returned
// function ends that.
func (t *task) shipAlways() (stop func()) {
	ctx, cancel := context.WithCancel(t.agent.work)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s, failed := t.shipper(), false
		resumed := false
		for sleep.For(ctx, max(shipInterval, t.agent.Store.WriteInterval())) {
			if !t.started() {
				continue
			}
			var err error
			if !resumed {
				err = s.resume(ctx)
				resumed = err == nil
			}
			if resumed {
				err = s.ship(ctx)
			}
			if err != nil && !failed && ctx.Err() == nil {
				t.agent.Log.Warn("output not shipped", "error", err)
			}
			failed = err != nil
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// started reports whether there may be output.
func (t *task) started() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.report.Started
}

// shipPatience bounds how long the end of a task waits for its output: a store
// that takes none must not keep a slice forever.
const shipPatience = 30 * time.Second

// shipAll copies all output that is not in the store yet; false if it could not.
func (t *task) shipAll() bool {
	ctx, cancel := context.WithTimeout(t.agent.work, shipPatience)
	defer cancel()
	for {
		s := t.shipper()
		err := s.resume(ctx)
		if err == nil {
			err = s.ship(ctx)
		}
		if err == nil {
			return true
		}
		if !sleep.For(ctx, max(shipInterval, t.agent.Store.WriteInterval())) {
			t.agent.Log.Error("output not shipped", "error", err)
			return false
		}
	}
}
