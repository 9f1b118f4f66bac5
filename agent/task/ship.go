package task

import (
	"cmp"
	"context"
	"time"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/logs"
	"github.com/fray-ml/fray/sleep"
)

func (t *Task) shipper() *logs.Shipper {
	return &logs.Shipper{
		Store: t.host.Store, Job: cmp.Or(t.in.JobID, t.in.Job.String()), Attempt: t.in.Attempt, Task: t.in.Task,
		Path: t.dir.File(hostdir.OutputFile), Times: t.dir.File(hostdir.TimesFile),
	}
}

// shipAlways copies the task's output to the store while it runs. The returned
// function ends that.
func (t *Task) shipAlways() (stop func()) {
	ctx, cancel := context.WithCancel(t.host.Work)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s, failed := t.shipper(), false
		resumed := false
		for sleep.For(ctx, max(logs.Interval, t.host.Store.WriteInterval())) {
			if !t.Started() {
				continue
			}
			var err error
			if !resumed {
				err = s.Resume(ctx)
				resumed = err == nil
			}
			if resumed {
				err = s.Ship(ctx)
			}
			if err != nil && !failed && ctx.Err() == nil {
				t.host.Log.Warn("output not shipped", "error", err)
			}
			failed = err != nil
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// shipPatience bounds how long the end of a task waits for its output: a store
// that takes none must not keep a slice forever.
const shipPatience = 30 * time.Second

// shipAll copies all output that is not in the store yet; false if it could not.
func (t *Task) shipAll() bool {
	ctx, cancel := context.WithTimeout(t.host.Work, shipPatience)
	defer cancel()
	for {
		s := t.shipper()
		err := s.Resume(ctx)
		if err == nil {
			err = s.Finish(ctx)
		}
		if err == nil {
			return true
		}
		if !sleep.For(ctx, max(logs.Interval, t.host.Store.WriteInterval())) {
			t.host.Log.Error("output not shipped", "error", err)
			return false
		}
	}
}
