package task

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/identities"
	"github.com/fray-ml/fray/agent/logs"
	"github.com/fray-ml/fray/agent/mask"
	"github.com/fray-ml/fray/agent/outcome"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/logtime"
	"github.com/fray-ml/fray/state/store"
)

// Config is the part of an agent's configuration that its tasks follow from.
type Config struct {
	Slice, Address string
	Host           int
	WorkDir        string // where tasks without a bundle run
	CacheDir       string // of uv environments
	Workspace      string // "": "default"
	Zone           string // "": not known
	Executable     string // is started as "EXECUTABLE task-shim"
	GPUs           []int  // the host's own, by index; nil: all
	Simulated      bool   // there is no machine of the host's own
	TPUNode        bool   // the machine is one of a TPU node
	Sealer         schema.Sealer
	Store          store.Store
	Log            *slog.Logger
	// RegistryToken returns a password for a registry and its user; may be nil.
	RegistryToken func(ctx context.Context, registry string) (user, password string, err error)
}

// Host is what tasks have of the host that they run on.
type Host struct {
	Config
	Dir        *hostdir.Dir
	Keys       *hostdir.Keys
	Identities *identities.Keeper
	Work       context.Context // ends when the host's directory is gone
	Cluster    string          // where tasks find the cluster API, "" if nowhere
	Packed     string          // the packed task that the host's directory is of, "" for a host
	// Stack returns the mark of the stack that the host belongs to, "" while it is not known.
	Stack func() string
	// FreePorts gives up the ports that the host keeps while no task runs.
	FreePorts func()
	Updates   chan<- Update
}

// Update is a change of a task's report.
type Update struct {
	Task   *Task
	Report state.TaskReport
}

// Task is one start of one task, from its preparation until nothing of it is
// left and all its output is shipped.
type Task struct {
	host    *Host
	dir     hostdir.TaskDir
	in      hostdir.Intent
	written bool // the intent is

	ctx    context.Context // of its life; ends with a StopCause, or with the host's work
	cancel context.CancelCauseFunc

	// run is what the task is part of, to be read once runSeen is closed: an
	// adopted task learns it from the assignment.
	run     *state.Run
	runSeen chan struct{}
	done    chan struct{} // closed when nothing of it is left
	// identityGone is set once the task's identity was removed: a write that is
	// under way then removes it again.
	identityGone atomic.Bool

	// shim is the process of the supervisor while the command runs, and contained the
	// first one of its container once that is known; 0 otherwise.
	shim, contained atomic.Int64

	hide   *mask.Set // see hidden
	hiding sync.Once

	mu     sync.Mutex
	report state.TaskReport
}

// New is a task that is to be started, with its first report.
func New(host *Host, in hostdir.Intent, run *state.Run, report state.TaskReport) *Task {
	t := resume(host, in)
	t.run, t.report = run, report
	close(t.runSeen)
	return t
}

// Resume is a task whose intent an earlier agent has written.
func Resume(host *Host, in hostdir.Intent) *Task {
	t := resume(host, in)
	t.written = true
	t.report = state.TaskReport{
		Job: in.Job, Attempt: in.Attempt, Generation: in.Generation, Task: in.Task,
		State: schema.TaskAssigned, Ports: in.Ports,
	}
	return t
}

func resume(host *Host, in hostdir.Intent) *Task {
	t := &Task{host: host, dir: host.Dir.Task(in.Key), in: in, runSeen: make(chan struct{}), done: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancelCause(host.Work)
	return t
}

// Recall takes over the report of a task from its records. Unless its supervisor
// is alive, nothing is known of the task before its end is.
func (t *Task) Recall() (supervised bool) {
	var proc hostdir.ProcessRecord
	if err := record.Read(t.dir.File(hostdir.ProcessFile), &proc); err == nil {
		t.report.State, t.report.Started = schema.TaskRunning, true
		if t.in.Health {
			t.report.Health = t.lastHealth()
		}
		t.report.PID, t.report.StartedAt = proc.PID, proc.StartedAt
	}
	return shimAlive(t.host)
}

// Start runs a new task; its reports are sent as updates.
func (t *Task) Start() {
	go t.live(func(s *supervision) hostdir.ExitRecord { return t.execute(t.ctx, s) })
}

// TakeOver goes on with a task that an earlier agent started.
func (t *Task) TakeOver() {
	go t.live(func(s *supervision) hostdir.ExitRecord { return s.takeOver(t.ctx) })
}

func (t *Task) live(life func(*supervision) hostdir.ExitRecord) {
	stopShipping := t.shipAlways()
	s := &supervision{task: t}
	end := life(s)
	t.cancel(nil)
	stopShipping()
	t.finish(end, s.stopping)
	close(t.done)
}

// Key names the start of the task.
func (t *Task) Key() string { return t.in.Key }

// Ordinal is the number of the start on its host, from 1.
func (t *Task) Ordinal() int { return t.in.Ordinal }

// Name is what a task is called from outside.
type Name struct {
	Job     schema.Address
	JobID   string
	Attempt int
	Index   int // among the tasks of the attempt
}

// Name is the task's name, which never changes.
func (t *Task) Name() Name {
	return Name{Job: t.in.Job, JobID: t.in.JobID, Attempt: t.in.Attempt, Index: t.in.Task}
}

// Done is closed when nothing of the task is left.
func (t *Task) Done() <-chan struct{} { return t.done }

// outputPath is the file of what the task writes.
func (t *Task) outputPath() string { return t.dir.File(hostdir.OutputFile) }

// Report is the report of a task that does not run yet.
func (t *Task) Report() state.TaskReport {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.report
}

// Started reports whether there may be output.
func (t *Task) Started() bool { return t.Report().Started }

// ShipRest ships in the background what an earlier agent could not ship of a task
// that has ended.
func (t *Task) ShipRest() {
	if _, err := os.Lstat(t.outputPath()); err == nil {
		rest := remains{task: t}
		go rest.settleLater(t.host.Work)
	}
}

// Stop ends the task; the first cause counts.
func (t *Task) Stop(why outcome.StopCause) {
	why.Reason = t.hidden().String(why.Reason)
	t.cancel(&why)
}

// Provide gives an adopted task what it is part of. Only the agent's loop calls it.
func (t *Task) Provide(run *state.Run) {
	select {
	case <-t.runSeen:
	default:
		t.run = run
		close(t.runSeen)
	}
}

// set changes the task's report and sends it to the agent's loop.
func (t *Task) set(edit func(*state.TaskReport)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	edit(&t.report)
	t.report.Reason = t.hidden().String(t.report.Reason)
	report := t.report
	report.Ports = maps.Clone(report.Ports)
	t.host.Updates <- Update{Task: t, Report: report}
}

// execute prepares and runs the command and returns how it ended.
func (t *Task) execute(ctx context.Context, s *supervision) hostdir.ExitRecord {
	spec, err := preparation{t}.prepare(ctx)
	var early *outcome.Early
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return t.endedEarly(causeOf(ctx))
	case errors.As(err, &early):
		return t.endedEarly(early)
	default:
		return t.endedEarly(&outcome.Early{State: schema.TaskWorkerFailed, Reason: err.Error()})
	}
	gone, err := s.launch(ctx, spec)
	if err != nil {
		return t.endedEarly(&outcome.Early{State: schema.TaskWorkerFailed, Reason: err.Error()})
	}
	return s.watch(ctx, gone)
}

// causeOf is why a context of a task ended, as the end of a task that never ran.
func causeOf(ctx context.Context) *outcome.Early {
	if cause, ok := errors.AsType[*outcome.StopCause](context.Cause(ctx)); ok {
		return &outcome.Early{State: cause.State, Reason: cause.Reason}
	}
	return &outcome.Early{State: schema.TaskKilled, Reason: "the host's directory is gone"}
}

// endedEarly is the record of a task whose command did not run. Its cause goes
// to the task's log as well: people read that first.
func (t *Task) endedEarly(e *outcome.Early) hostdir.ExitRecord {
	hide := t.hidden()
	end := hostdir.ExitRecord{EndedAt: time.Now(), State: e.State, Reason: hide.String(e.Reason)}
	if e.Termination != nil {
		end.Termination = &schema.Termination{Cause: e.Termination.Cause, Message: hostdir.Clipped(hide.String(e.Termination.Message))}
	}
	if t.host.Work.Err() != nil {
		return end
	}
	err := t.writeIntent()
	if err == nil && e.Output != "" {
		err = writeOutput(t.outputPath(), t.dir.File(hostdir.TimesFile), hide.String(e.Output), end.EndedAt)
	}
	if err == nil {
		end.Swept = true
		end.Reason = hostdir.Clipped(end.Reason)
		err = record.Write(t.dir.File(hostdir.ExitFile), end)
	}
	if err != nil {
		t.host.Log.Error("end of task not recorded", "error", err)
	}
	return end
}

// writeOutput writes the output of a task whose command did not run, and its times.
func writeOutput(path, times, text string, at time.Time) error {
	index := logtime.Index{{At: at}}
	return errors.Join(os.WriteFile(path, []byte(text), 0o600), os.WriteFile(times, index.Bytes(), 0o600))
}

// tailLines is how many lines of output the report of a failed task carries.
const tailLines = 20

// finish reports the end, when all output is shipped.
func (t *Task) finish(exit hostdir.ExitRecord, stopping *hostdir.StopRecord) {
	// The log is masked as it is written, except that of an agent before this
	// version. A secret that the cut goes through is masked in the log only.
	output := t.hidden().String(logs.End(t.dir.File(hostdir.OutputFile), 64<<10))
	t.removeIdentity()
	left := outcome.Ending{Output: output, Termination: t.termination()}
	if left.Termination == nil && stopping == nil {
		left.Termination = t.packageMissing(exit, output)
	}
	end := outcome.Of(exit, stopping, t.in, left)
	shipped := t.shipAll()
	t.mu.Lock()
	r := t.report
	t.mu.Unlock()
	r.State, r.Reason, r.BadHost, r.Termination = end.State, end.Reason, end.BadHost, end.Termination
	r.EndedAt, r.ExitCode, r.Signal = exit.EndedAt, exit.ExitCode, exit.Signal
	r.Hook = hookResult(t)
	r.Started = !exit.StartedAt.IsZero()
	if r.Started {
		r.StartedAt = exit.StartedAt
	}
	switch end.State {
	case schema.TaskFailed, schema.TaskWorkerFailed, schema.TaskExitUnknown:
		r.Tail = command.LastLines(strings.ToValidUTF8(output, "�"), tailLines)
	case schema.TaskPending, schema.TaskAssigned, schema.TaskBuilding, schema.TaskRunning, schema.TaskSucceeded,
		schema.TaskKilled, schema.TaskPreempted, schema.TaskUnschedulable:
	}
	r.Reason = t.hidden().String(r.Reason)
	rest := remains{task: t, report: &r, shipped: shipped}
	if t.host.Work.Err() == nil && !rest.settle() {
		go rest.settleLater(t.host.Work)
	}
	t.set(func(report *state.TaskReport) { *report = r })
}
