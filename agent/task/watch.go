package task

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/agent/container"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/outcome"
	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/filelock"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
)

// supervision is the part of a task's life in which its shim runs the command, and
// what this process knows of that. The disk may not have it.
type supervision struct {
	task *Task

	proc     hostdir.ProcessRecord  // once the command runs
	running  *hostdir.ProcessRecord // as the shim reported it to this process, nil if it did not
	stopping *hostdir.StopRecord    // why the task is being ended, nil if it is not

	mu      sync.Mutex
	shimEnd string // how the shim ended, "" where this process is not its parent
}

// takeOver goes on with a task that an earlier agent started.
func (s *supervision) takeOver(ctx context.Context) hostdir.ExitRecord {
	var stop hostdir.StopRecord
	if err := record.Read(s.task.dir.File(hostdir.StopFile), &stop); err == nil {
		s.stopping = &stop
		s.task.Stop(outcome.StopCause{State: stop.State, Reason: stop.Reason}) // the earlier agent died in the middle of it
	}
	if !shimAlive(s.task.host) { // it is over: that it runs is not reported again
		_ = record.Read(s.task.dir.File(hostdir.ProcessFile), &s.proc) // without one it never ran
		return s.ending()
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for shimAlive(s.task.host) && sleep.For(s.task.host.Work, 50*time.Millisecond) {
		}
	}()
	return s.watch(ctx, gone)
}

// shimAlive reports whether the supervisor of a host's task runs.
func shimAlive(h *Host) bool {
	held, err := filelock.IsHeld(h.Dir.File(hostdir.TaskLockFile))
	if err != nil {
		h.Log.Error("lock of the task's supervisor not read", "error", err)
		return !h.Dir.Gone()
	}
	return held
}

// watch follows a running task until its shim is gone, ending it when ctx ends.
func (s *supervision) watch(ctx context.Context, gone <-chan struct{}) hostdir.ExitRecord {
	if proc, ok := s.awaitProcess(gone); ok {
		s.proc = proc
		s.task.shim.Store(int64(proc.Shim))
		defer s.task.shim.Store(0)
		s.task.set(func(r *state.TaskReport) {
			r.State, r.Started, r.PID, r.StartedAt = schema.TaskRunning, true, proc.PID, proc.StartedAt
			if s.task.in.Health {
				r.Health = s.task.lastHealth()
			}
		})
		if limit := time.Duration(s.task.in.Timeout); limit > 0 {
			timer := time.AfterFunc(time.Until(proc.StartedAt.Add(limit)), func() {
				s.task.Stop(outcome.StopCause{State: schema.TaskFailed, Reason: "timed out after " + shortDuration(limit)})
			})
			defer timer.Stop()
		}
		checked, endChecks := context.WithCancel(ctx)
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			s.checkHealth(checked, proc.StartedAt)
		}()
		defer func() {
			endChecks()
			<-finished
		}()
	}
	select {
	case <-gone:
	case <-ctx.Done():
		s.end(ctx, gone)
	}
	return s.ending()
}

// awaitProcess waits until the shim reports that the command runs; false when it never will.
func (s *supervision) awaitProcess(gone <-chan struct{}) (hostdir.ProcessRecord, bool) {
	if s.running != nil { // the shim reported it
		return *s.running, true
	}
	for {
		var proc hostdir.ProcessRecord
		err := record.Read(s.task.dir.File(hostdir.ProcessFile), &proc)
		if err == nil {
			return proc, true
		}
		select {
		case <-gone:
			err := record.Read(s.task.dir.File(hostdir.ProcessFile), &proc)
			return proc, err == nil
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// stopSlack is what a shim gets beyond the grace before it is given up.
const stopSlack = 5 * time.Second

// end makes the shim end the task, and ends both where that does not help.
func (s *supervision) end(ctx context.Context, gone <-chan struct{}) {
	if s.task.host.Work.Err() != nil {
		s.kill()
		return
	}
	cause := causeOf(ctx)
	if s.stopping == nil {
		s.stopping = &hostdir.StopRecord{State: cause.State, Reason: hostdir.Clipped(cause.Reason), At: time.Now()}
		s.stopping.Hook, s.stopping.HookUntil = s.hookFor(ctx, s.stopping.At)
		if err := record.Write(s.task.dir.File(hostdir.StopFile), s.stopping); err != nil {
			s.task.host.Log.Error("stop not recorded", "error", err)
		}
	}
	s.signalShim(unix.SIGTERM)
	select {
	case <-gone:
	case <-s.task.host.Work.Done():
		s.kill()
	case <-time.After(max(0, time.Until(s.stopping.HookUntil)) + time.Duration(s.task.in.Grace) + stopSlack):
		s.task.host.Log.Warn("the task's supervisor does not end it", "task", s.task.in.Key)
		s.kill()
	}
}

// kill ends the shim and everything of the task at once.
func (s *supervision) kill() {
	s.signalShim(unix.SIGKILL)
	s.sweep()
}

func (s *supervision) sweep() {
	for {
		proc := s.proc
		if proc.Rebooted(process.BootID()) {
			proc = hostdir.ProcessRecord{}
		}
		err := process.Sweep(proc.Traces(s.task.in.Nonce))
		if err == nil {
			return
		}
		s.task.host.Log.Error("task not ended", "task", s.task.in.Key, "error", err)
		s.task.set(func(r *state.TaskReport) { r.Reason = err.Error() })
		sleep.For(context.Background(), time.Second)
	}
}

// signalShim signals the shim, if it lives: only then is the record in its lock true.
func (s *supervision) signalShim(sig unix.Signal) {
	path := s.task.host.Dir.File(hostdir.TaskLockFile)
	held, err := filelock.IsHeld(path)
	if err == nil && held {
		var h hostdir.Holder
		if h, err = hostdir.ReadHolder(path); err == nil && h.PID > 1 {
			err = process.Signal(h.PID, sig)
		}
	}
	if err != nil {
		s.task.host.Log.Error("task's supervisor not signalled", "error", err)
	}
}

// ending is how the task ended, once its shim is gone. Unless the shim recorded
// that nothing is left, what is left is ended here.
func (s *supervision) ending() hostdir.ExitRecord {
	var end hostdir.ExitRecord
	err := record.Read(s.task.dir.File(hostdir.ExitFile), &end)
	if err == nil && end.Swept {
		return s.endContainer(end)
	}
	s.sweep()
	if err == nil {
		return s.endContainer(end)
	}
	s.endContainer(hostdir.ExitRecord{})
	s.mu.Lock()
	shimEnd := s.shimEnd
	s.mu.Unlock()
	end = outcome.Unknown(err, s.proc, outcome.Unseen{Shim: shimEnd, Boot: process.BootID()})
	end.EndedAt = time.Now()
	if s.task.host.Work.Err() == nil {
		if err := record.Write(s.task.dir.File(hostdir.ExitFile), end); err != nil {
			s.task.host.Log.Error("end of task not recorded", "error", err)
		}
	}
	return end
}

// shortDuration is a duration without the zeros: "5m" and not "5m0s".
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// endContainer sees to it that nothing is left of the task's container, whatever
// ended its client, and returns how the task ended as the runtime knows it.
func (s *supervision) endContainer(end hostdir.ExitRecord) hostdir.ExitRecord {
	c := s.task.in.Container
	if c == nil {
		return end
	}
	if err := os.Remove(s.task.dir.File(hostdir.EnvFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.task.host.Log.Error("variables of a container not removed", "error", err)
	}
	end = container.Explain(*c, end)
	for {
		err := container.Remove(context.Background(), *c)
		if err == nil || s.task.host.Work.Err() != nil {
			return end
		}
		s.task.host.Log.Error("container not ended", "task", s.task.in.Key, "error", err)
		s.task.set(func(r *state.TaskReport) { r.Reason = err.Error() })
		sleep.For(s.task.host.Work, time.Second)
	}
}

// hookMargin is what a hook leaves of the time until its host is gone, for the end of the
// task and its last report.
const hookMargin = 5 * time.Second

// hookFor is the stop before which the task's hook is to run, and until when: "" where it is not to.
func (s *supervision) hookFor(ctx context.Context, now time.Time) (schema.StopReason, time.Time) {
	t := s.task
	cause, ok := errors.AsType[*outcome.StopCause](context.Cause(ctx))
	if !ok || !t.in.BeforeStop.RunsOn(cause.Stop, t.in.Task) {
		return "", time.Time{}
	}
	until := now.Add(t.in.HookTimeout())
	if last := cause.Before.Add(-hookMargin); !cause.Before.IsZero() && last.Before(until) {
		until = last
	}
	return cause.Stop, until
}
