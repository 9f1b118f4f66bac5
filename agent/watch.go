package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/filelock"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
)

// takeOver goes on with a task that an earlier agent started.
func (t *task) takeOver(ctx context.Context) exitRecord {
	var stop stopRecord
	if err := readRecord(t.dir.file(stopFile), &stop); err == nil {
		t.stopping = &stop
		t.stop(stop.State, stop.Reason) // the earlier agent died in the middle of it
	}
	if !t.shimAlive() { // it is over: that it runs is not said again
		_ = readRecord(t.dir.file(processFile), &t.proc) // without one it never ran
		return t.ending()
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for t.shimAlive() && sleep.For(t.agent.work, 50*time.Millisecond) {
		}
	}()
	return t.watch(ctx, gone)
}

func (t *task) shimAlive() bool {
	held, err := filelock.IsHeld(t.agent.dir.file(taskLockFile))
	if err != nil {
		t.agent.Log.Error("task not looked at", "error", err)
		return !t.agent.dir.gone()
	}
	return held
}

// watch follows a running task until its shim is gone, ending it when ctx ends.
func (t *task) watch(ctx context.Context, gone <-chan struct{}) exitRecord {
	if proc, ok := t.awaitProcess(gone); ok {
		t.proc = proc
		t.set(func(r *state.TaskReport) {
			r.State, r.Started, r.PID, r.StartedAt = schema.TaskRunning, true, proc.PID, proc.StartedAt
			if t.in.Health {
				r.Health = t.lastHealth()
			}
		})
		if limit := time.Duration(t.in.Timeout); limit > 0 {
			timer := time.AfterFunc(time.Until(proc.StartedAt.Add(limit)), func() {
				t.stop(schema.TaskFailed, "timed out after "+shortDuration(limit))
			})
			defer timer.Stop()
		}
		checked, endChecks := context.WithCancel(ctx)
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			t.checkHealth(checked, proc.StartedAt)
		}()
		defer func() {
			endChecks()
			<-finished
		}()
	}
	select {
	case <-gone:
	case <-ctx.Done():
		t.end(ctx, gone)
	}
	return t.ending()
}

// awaitProcess waits for the shim's word that the command runs; false when it never will.
func (t *task) awaitProcess(gone <-chan struct{}) (processRecord, bool) {
	if t.running != nil { // the shim told it
		return *t.running, true
	}
	for {
		var proc processRecord
		err := readRecord(t.dir.file(processFile), &proc)
		if err == nil {
			return proc, true
		}
		select {
		case <-gone:
			err := readRecord(t.dir.file(processFile), &proc)
			return proc, err == nil
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// stopSlack is what a shim gets beyond the grace before it is given up.
const stopSlack = 5 * time.Second

// end makes the shim end the task, and ends both where that does not help.
func (t *task) end(ctx context.Context, gone <-chan struct{}) {
	if t.agent.work.Err() != nil {
		t.kill()
		return
	}
	cause := causeOf(ctx)
	if t.stopping == nil {
		t.stopping = &stopRecord{State: cause.state, Reason: clipped(cause.reason), At: time.Now()}
		if err := writeRecord(t.dir.file(stopFile), t.stopping); err != nil {
			t.agent.Log.Error("stop not recorded", "error", err)
		}
	}
	t.signalShim(unix.SIGTERM)
	select {
	case <-gone:
	case <-t.agent.work.Done():
		t.kill()
	case <-time.After(time.Duration(t.in.Grace) + stopSlack):
		t.agent.Log.Warn("the task's supervisor does not end it", "task", t.in.Key)
		t.kill()
	}
}

// kill ends the shim and everything of the task at once.
func (t *task) kill() {
	t.signalShim(unix.SIGKILL)
	t.sweep()
}

func (t *task) sweep() {
	for {
		proc := t.proc
		if proc.rebooted(bootID()) {
			proc = processRecord{}
		}
		err := sweep(proc, t.in.Nonce)
		if err == nil {
			return
		}
		t.agent.Log.Error("task not ended", "task", t.in.Key, "error", err)
		t.set(func(r *state.TaskReport) { r.Reason = err.Error() })
		sleep.For(context.Background(), time.Second)
	}
}

// signalShim signals the shim, if it lives: only then is its lock's word true.
func (t *task) signalShim(sig unix.Signal) {
	path := t.agent.dir.file(taskLockFile)
	held, err := filelock.IsHeld(path)
	if err == nil && held {
		var h holder
		if h, err = readHolder(path); err == nil && h.PID > 1 {
			err = signalProcess(h.PID, sig)
		}
	}
	if err != nil {
		t.agent.Log.Error("task's supervisor not signalled", "error", err)
	}
}

// ending is how the task ended, once its shim is gone. Unless the shim recorded
// that nothing is left, what is left is ended here.
func (t *task) ending() exitRecord {
	var record exitRecord
	err := readRecord(t.dir.file(exitFile), &record)
	if err == nil && record.Swept {
		return t.endContainer(record)
	}
	t.sweep()
	if err == nil {
		return t.endContainer(record)
	}
	t.endContainer(exitRecord{})
	t.mu.Lock()
	shimEnd := t.shimEnd
	t.mu.Unlock()
	record = unknownEnd(err, t.proc, unseenEnd{shim: shimEnd, boot: bootID()})
	record.EndedAt = time.Now()
	if t.agent.work.Err() == nil {
		if err := writeRecord(t.dir.file(exitFile), record); err != nil {
			t.agent.Log.Error("end of task not recorded", "error", err)
		}
	}
	return record
}

// unseenEnd is what is known of an end that left no record.
type unseenEnd struct {
	shim string // how the supervisor ended; "": not known
	boot string // the machine's boot now; "": not known
}

// unknownEnd is the end of a task without an exit record: nothing says how its
// command ended, and it is not guessed. Missing is why there is no record. After
// a restart of the machine that is the reason.
func unknownEnd(missing error, proc processRecord, seen unseenEnd) exitRecord {
	record := exitRecord{State: schema.TaskExitUnknown, StartedAt: proc.StartedAt, Swept: true}
	ended := "ended"
	if seen.shim != "" {
		ended += " (" + seen.shim + ")"
	}
	switch {
	case !errors.Is(missing, os.ErrNotExist):
		record.Reason = clipped(fmt.Sprintf("exit status unknown: its record cannot be read: %v", missing))
	case proc.rebooted(seen.boot):
		record.State, record.Reason = schema.TaskWorkerFailed, "the machine restarted while the task ran"
	case proc.PID != 0:
		record.Reason = fmt.Sprintf("exit status unknown: the task's supervisor %s before it recorded one", ended)
	default:
		record.Reason = fmt.Sprintf("exit status unknown: the task's supervisor %s before it recorded that the command runs", ended)
	}
	return record
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
