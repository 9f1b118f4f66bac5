package agent

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/agent/mask"
	"github.com/fray-ml/fray/filelock"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// task is one start of one task, from its preparation until nothing of it is
// left and all its output is shipped.
type task struct {
	agent   *agent
	dir     taskDir
	in      intent
	written bool // the intent is

	cancel context.CancelCauseFunc

	// run is what the task is part of, to be read once runSeen is closed: an
	// adopted task learns it from the assignment.
	run     *state.Run
	runSeen chan struct{}
	proc    processRecord // once the command runs
	// What this process was told and the disk may not have: that the command runs,
	// and why the task is being ended.
	running  *processRecord
	stopping *stopRecord
	done     chan struct{} // closed when nothing of it is left
	// identityGone says that the task's identity was removed, to who may be writing it.
	identityGone atomic.Bool

	hide   *mask.Set // see hidden
	hiding sync.Once

	mu      sync.Mutex
	report  state.TaskReport
	shimEnd string // how the supervisor ended, "" where this process is not its parent
}

// stopCause is why a task is ended before its time.
type stopCause struct {
	state  schema.TaskState
	reason string
}

func (c *stopCause) Error() string { return c.reason }

// endError ends a task whose command did not run.
type endError struct {
	state  schema.TaskState
	reason string
	output string // of what went wrong, for the task's log
}

func (e *endError) Error() string { return e.reason }

// taskKey names one start: a job, an attempt and a generation. It is a file name.
func taskKey(a *state.Assignment) string {
	sum := sha256.Sum256([]byte(a.Run.Job.String()))
	return fmt.Sprintf("%d-%d-%s", a.Generation, a.Run.Attempt, hex.EncodeToString(sum[:4]))
}

// start begins the task of an assignment, unless this host began it before or
// must not run it.
func (a *agent) start(want *state.Assignment) {
	index := -1
	for i, peer := range want.Run.Peers {
		if peer.Slice == a.Slice && peer.Host == a.Host {
			index = i
		}
	}
	if index < 0 {
		return // this host has no part in the attempt
	}
	report := state.TaskReport{
		Job: want.Run.Job, Attempt: want.Run.Attempt, Generation: want.Generation, Task: index,
		State: schema.TaskPending,
	}
	at := mark{Epoch: want.Epoch, Generation: want.Generation}
	if a.refuse == at {
		return // that was its end; it does not start after all
	}
	if state, reason := a.refusal(want.Run.Peers[index]); reason != "" {
		a.refuse = at
		report.State, report.Reason = state, reason
		a.report.Task = &report
		a.publish()
		return
	}
	key := taskKey(want)
	ordinal := 1
	if a.task != nil {
		ordinal = a.task.in.Ordinal + 1
	}
	t := &task{agent: a, dir: a.dir.taskDir(key), run: want.Run, runSeen: make(chan struct{}), report: report}
	close(t.runSeen)
	t.in = intent{
		Key: key, Ordinal: ordinal, Nonce: rand.Text(), Job: want.Run.Job, JobID: want.Run.JobID,
		Attempt: want.Run.Attempt, Generation: want.Generation, Task: index,
		Grace: want.Run.Spec.StopGrace, Timeout: want.Run.Spec.Timeout, TPU: want.Run.Accelerator != "",
		Health: want.Run.Spec.HealthCheck != nil, Actor: want.Run.Spec.HostsActor(),
	}
	if _, err := os.Stat(t.dir.file(intentFile)); err == nil {
		if last, err := t.dir.lastReport(); err == nil && last != nil {
			a.report.Task = last
			a.publish()
		}
		return
	}
	a.begin(t, t.execute)
}

// refusal says why a host must not run a task as this peer, and how the task
// ends by that; "" if it may run.
func (a *agent) refusal(self state.Peer) (schema.TaskState, string) {
	switch {
	case self.Address != a.Address:
		return schema.TaskUnschedulable, fmt.Sprintf("the assignment has address %s for this host, which is %s", self.Address, a.Address)
	case a.report.Notice != "":
		return schema.TaskPreempted, "this host takes no more tasks: " + a.report.Notice
	}
	return "", ""
}

// begin makes t the agent's task and runs its life.
func (a *agent) begin(t *task, life func(context.Context) exitRecord) {
	ctx, cancel := context.WithCancelCause(a.work)
	t.cancel, t.done = cancel, make(chan struct{})
	a.task, a.ended = t, false
	a.live.set(a.Slice, t)
	report := t.report
	a.report.Task = &report
	a.publish()
	go func() {
		stopShipping := t.shipAlways()
		record := life(ctx)
		cancel(nil)
		stopShipping()
		t.finish(record)
		close(t.done)
	}()
}

// adopt takes over what an earlier agent of this host left.
func (a *agent) adopt() error {
	var build buildRecord
	if err := readJSON(a.dir.file(buildFile), &build); err == nil {
		if err := a.endBuild(build); err != nil {
			return err
		}
	}
	in, err := a.dir.lastIntent()
	if err != nil || in == nil {
		return err
	}
	t := &task{agent: a, dir: a.dir.taskDir(in.Key), in: *in, written: true, runSeen: make(chan struct{})}
	last, err := t.dir.lastReport()
	if err != nil {
		return err
	}
	if last != nil {
		a.task, a.ended = t, true
		a.report.Task = last
		if _, err := os.Lstat(t.dir.file(outputFile)); err == nil { // it could not be shipped
			rest := remains{task: t}
			go rest.settleLater(a.work)
		}
		return nil
	}
	t.report = state.TaskReport{
		Job: in.Job, Attempt: in.Attempt, Generation: in.Generation, Task: in.Task,
		State: schema.TaskAssigned, Ports: in.Ports,
	}
	a.awaitMovedTask()
	var proc processRecord
	if err := readRecord(t.dir.file(processFile), &proc); err == nil {
		t.report.State, t.report.Started = schema.TaskRunning, true
		if in.Health {
			t.report.Health = t.lastHealth()
		}
		t.report.PID, t.report.StartedAt = proc.PID, proc.StartedAt
	}
	a.settling = !t.shimAlive()
	a.begin(t, t.takeOver)
	return nil
}

// movedTaskPatience bounds the wait for a task that ends because its host's
// directory was renamed; its supervisor looks twice a second.
const movedTaskPatience = 30 * time.Second

// awaitMovedTask waits until a task that was started before the host's directory was
// renamed has ended: it must not be reported as running a moment before its end.
func (a *agent) awaitMovedTask() {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	path := a.dir.file(taskLockFile)
	for deadline := time.Now().Add(movedTaskPatience); time.Now().Before(deadline); {
		if held, err := filelock.IsHeld(path); err != nil || !held {
			return
		}
		if who, err := readHolder(path); err != nil || !who.servesElsewhere(a.dir) {
			return
		}
		select {
		case <-a.work.Done():
			return
		case <-tick.C:
		}
	}
}

// stop ends the task; the first cause counts.
func (t *task) stop(state schema.TaskState, reason string) {
	t.cancel(&stopCause{state: state, reason: t.hidden().String(reason)})
}

// provide tells an adopted task what it is part of. Only the loop calls it.
func (t *task) provide(run *state.Run) {
	select {
	case <-t.runSeen:
	default:
		t.run = run
		close(t.runSeen)
	}
}

// set changes the task's report and tells the loop.
func (t *task) set(edit func(*state.TaskReport)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	edit(&t.report)
	t.report.Reason = t.hidden().String(t.report.Reason)
	report := t.report
	report.Ports = maps.Clone(report.Ports)
	t.agent.updates <- update{task: t, report: report}
}

// execute prepares and runs the command and returns how it ended.
func (t *task) execute(ctx context.Context) exitRecord {
	spec, err := t.prepare(ctx)
	var early *endError
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return t.endedEarly(causeOf(ctx))
	case errors.As(err, &early):
		return t.endedEarly(early)
	default:
		return t.endedEarly(&endError{state: schema.TaskWorkerFailed, reason: err.Error()})
	}
	gone, err := t.launch(ctx, spec)
	if err != nil {
		return t.endedEarly(&endError{state: schema.TaskWorkerFailed, reason: err.Error()})
	}
	return t.watch(ctx, gone)
}

// causeOf is why a context of a task ended, as the end of a task that never ran.
func causeOf(ctx context.Context) *endError {
	if cause, ok := errors.AsType[*stopCause](context.Cause(ctx)); ok {
		return &endError{state: cause.state, reason: cause.reason}
	}
	return &endError{state: schema.TaskKilled, reason: "the host's directory is gone"}
}

// endedEarly is the record of a task whose command did not run. Its cause goes
// to the task's log as well: that is where people look first.
func (t *task) endedEarly(e *endError) exitRecord {
	hide := t.hidden()
	record := exitRecord{EndedAt: time.Now(), State: e.state, Reason: hide.String(e.reason)}
	if t.agent.work.Err() != nil {
		return record
	}
	err := t.writeIntent()
	if err == nil && e.output != "" {
		err = os.WriteFile(t.dir.file(outputFile), []byte(hide.String(e.output)), 0o600)
	}
	if err == nil {
		record.Swept = true
		record.Reason = clipped(record.Reason)
		err = writeRecord(t.dir.file(exitFile), record)
	}
	if err != nil {
		t.agent.Log.Error("end of task not recorded", "error", err)
	}
	return record
}

// writeIntent records that this task is about to be started on this host. From
// then on it never is again. What must be written about it later has its space
// from here on: a task that finds none is not started.
func (t *task) writeIntent() error {
	if t.written {
		return nil
	}
	t.in.At = time.Now()
	err := os.MkdirAll(string(t.dir), 0o700)
	if err == nil {
		err = t.makeTermination()
	}
	if err == nil {
		err = reserve(t.dir.file(processFile), t.dir.file(stopFile), t.dir.file(exitFile))
	}
	if err == nil && t.in.Health {
		err = reserve(t.dir.file(healthFile))
	}
	if err == nil {
		err = writeJSON(t.dir.file(intentFile), t.in)
	}
	if err == nil {
		t.written = true
		return nil
	}
	err = fmt.Errorf("record start: %w", err)
	if _, there := os.Lstat(t.dir.file(intentFile)); errors.Is(there, os.ErrNotExist) {
		err = errors.Join(err, os.RemoveAll(string(t.dir)))
	}
	return err
}

// tailLines is how many lines of output the report of a failed task carries.
const tailLines = 20

// finish reports the end, when all output is shipped.
func (t *task) finish(record exitRecord) {
	// The log is masked as it is written, except that of an agent before this
	// version. A secret that the cut goes through is masked in the log only.
	output := t.hidden().String(outputEnd(t.dir.file(outputFile), 64<<10))
	t.removeIdentity()
	end := outcome(record, t.stopping, t.in, ending{output: output, termination: t.termination()})
	shipped := t.shipAll()
	t.mu.Lock()
	r := t.report
	t.mu.Unlock()
	r.State, r.Reason, r.BadHost, r.Termination = end.state, end.reason, end.badHost, end.termination
	r.EndedAt, r.ExitCode, r.Signal = record.EndedAt, record.ExitCode, record.Signal
	r.Started = !record.StartedAt.IsZero()
	if r.Started {
		r.StartedAt = record.StartedAt
	}
	switch end.state {
	case schema.TaskFailed, schema.TaskWorkerFailed, schema.TaskExitUnknown:
		r.Tail = lastLines(strings.ToValidUTF8(output, "�"), tailLines)
	case schema.TaskPending, schema.TaskAssigned, schema.TaskBuilding, schema.TaskRunning, schema.TaskSucceeded,
		schema.TaskKilled, schema.TaskPreempted, schema.TaskUnschedulable:
	}
	r.Reason = t.hidden().String(r.Reason)
	rest := remains{task: t, report: &r, shipped: shipped}
	if t.agent.work.Err() == nil && !rest.settle() {
		go rest.settleLater(t.agent.work)
	}
	t.set(func(report *state.TaskReport) { *report = r })
}
