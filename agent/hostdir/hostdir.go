package hostdir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Names in a host's directory.
const (
	AgentLockFile  = "agent.lock"
	TaskLockFile   = "task.lock"
	agentStateFile = "agent.json"
	PreemptedFile  = "preempted"
	dirtyFile      = "dirty"
	BuildFile      = "build.json"
	TasksDir       = "tasks"
	BundlesDir     = "bundles"
	CallablesDir   = "callables"
	ExecsDir       = "execs" // a file for each command that runs beside a task, named by its nonce

	IntentFile  = "task.json"
	ProcessFile = "process.json"
	StopFile    = "stop.json"
	HookFile    = "hook.json" // how the hook before the stop went, a schema.HookResult
	ExitFile    = "exit.json"
	ReportFile  = "report.json"
	OutputFile  = "output.log"
	TimesFile   = "output.times" // when which bytes of the output were written, see logtime
	HealthFile  = "health.json"
	EnvFile     = "env" // of a container; gone when the task is
	// IdentityFile is what the task's actors prove their namespace with; gone
	// when the task is.
	IdentityFile = IdentityDir + "/actor.pem"
	IdentityDir  = "identity"
	// TerminationFile is where the task may record why it ended.
	TerminationFile = TerminationDir + "/termination.json"
	TerminationDir  = "termination"
	// ProfilesDir has the sockets at which processes of the task serve their profiles.
	ProfilesDir = "profiles"
)

// Dir is the directory of one host.
type Dir struct {
	Path string
	info os.FileInfo
}

// Open opens the directory of a host, which it makes if it is not there.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(filepath.Join(path, TasksDir), 0o700); err != nil {
		return nil, fmt.Errorf("open host directory: %w", err)
	}
	return Find(path)
}

// Find is openHostDir for one that must be there.
func Find(path string) (*Dir, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open host directory: %w", err)
	}
	return &Dir{Path: path, info: info}, nil
}

// Gone reports whether the directory was removed or another put in its place.
// Nothing follows from an error other than absence.
func (d *Dir) Gone() bool {
	info, err := os.Stat(d.Path)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	return !os.SameFile(info, d.info)
}

// File is the path of a file of the directory.
func (d *Dir) File(name string) string { return filepath.Join(d.Path, name) }

// AgentState is what an agent remembers across its own restarts.
type AgentState struct {
	// SeqLimit is above every Seq that was ever reported: numbers are
	// taken in blocks, so that a report costs no write here.
	SeqLimit uint64 `json:"seq_limit"`
	Seen     Mark   `json:"seen"` // highest assignment seen
	Done     Mark   `json:"done"` // carried out: everything older has ended
	Ports    [2]int `json:"ports"`
	// ClusterPort is where tasks find the cluster API.
	ClusterPort int `json:"cluster_port,omitempty"`
}

// Mark places an assignment among others.
type Mark struct {
	Epoch      uint64 `json:"epoch"`
	Generation int64  `json:"generation"`
}

// Before reports whether m is older than other.
func (m Mark) Before(other Mark) bool {
	if m.Epoch != other.Epoch {
		return m.Epoch < other.Epoch
	}
	return m.Generation < other.Generation
}

// loadState returns the state as it was saved last, a new one where there is none.
// A damaged one is an error beside a new one: what the agent must do is in the store.
func (d *Dir) loadState() (AgentState, error) {
	var s AgentState
	err := record.Read(d.File(agentStateFile), &s)
	if errors.Is(err, os.ErrNotExist) {
		return AgentState{}, nil
	}
	if err != nil {
		return AgentState{}, fmt.Errorf("read the agent's state: %w", err)
	}
	return s, nil
}

func (d *Dir) saveState(s AgentState) error {
	return record.Write(d.File(agentStateFile), s)
}

// Intent is what an agent is about to start, written before it does. It holds
// no command and no environment: those may be secret.
type Intent struct {
	Key        string          `json:"key"` // name of its directory
	Ordinal    int             `json:"ordinal"`
	Nonce      string          `json:"nonce"` // in the environment of every process of the task
	Job        schema.Address  `json:"job"`
	JobID      string          `json:"job_id,omitempty"` // intents of older agents have none
	Attempt    int             `json:"attempt"`
	Generation int64           `json:"generation"`
	Task       int             `json:"task"`
	At         time.Time       `json:"at"`
	Grace      schema.Duration `json:"grace"`
	Timeout    schema.Duration `json:"timeout,omitempty"`
	Ports      map[string]int  `json:"ports,omitempty"`
	TPU        bool            `json:"tpu,omitempty"`
	Health     bool            `json:"health,omitempty"` // it has a health check
	// BeforeStop is the hook that runs before the task is ended, nil for none; its command
	// is with the supervisor.
	BeforeStop *schema.BeforeStop `json:"before_stop,omitempty"`
	Actor      bool               `json:"actor,omitempty"` // it hosts one
	// WorkDir and Venv are what was prepared for the command.
	WorkDir string `json:"work_dir,omitempty"`
	Venv    string `json:"venv,omitempty"`
	// Container is what the command runs in, if not on the host itself.
	Container *Container `json:"container,omitempty"`
}

// ProcessRecord is written by the shim once the command runs.
type ProcessRecord struct {
	Shim      int       `json:"shim"` // pid and session of the shim
	PID       int       `json:"pid"`  // of the command; its process group too
	StartedAt time.Time `json:"started_at"`
	// Boot is the machine's boot; "" where that is not known.
	Boot string `json:"boot,omitempty"`
}

// Rebooted reports whether the machine was booted since: the process ids are of
// other processes now. Boot is the machine's now.
func (r *ProcessRecord) Rebooted(boot string) bool {
	return r.Boot != "" && boot != "" && r.Boot != boot
}

// Traces are what processes of that start are found by.
func (r *ProcessRecord) Traces(nonce string) process.Traces {
	return process.Traces{Session: r.Shim, Group: r.PID, Nonce: nonce}
}

// StopRecord is why the agent ends a task, written before it does.
type StopRecord struct {
	State  schema.TaskState `json:"state"`
	Reason string           `json:"reason"`
	At     time.Time        `json:"at"`
	// Hook asks the task's supervisor to run the task's hook first, "": not to. HookUntil
	// is when the hook is ended.
	Hook      schema.StopReason `json:"hook,omitempty"`
	HookUntil time.Time         `json:"hook_until,omitzero"`
}

// ExitRecord is how a task's command ended. It is written as soon as that is
// known, and once more when nothing of the task is left.
type ExitRecord struct {
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at"`
	ExitCode  *int      `json:"exit_code,omitempty"`
	Signal    string    `json:"signal,omitempty"`
	// State is set where there is no code or signal to judge by: the command
	// did not start, or it was lost with its shim.
	State  schema.TaskState `json:"state,omitempty"`
	Reason string           `json:"reason,omitempty"`
	// Termination is what the agent found missing, nil if nothing.
	Termination *schema.Termination `json:"termination,omitempty"`
	// Swept is set once nothing of the task is left.
	Swept bool `json:"swept,omitempty"`
}

// MaxReason is the length of a reason in a record, in bytes: a record has room for
// so much and no more.
const MaxReason = 2000

// Clipped is a reason that fits into a record.
func Clipped(reason string) string {
	if len(reason) <= MaxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:MaxReason], "") + " …"
}

// BuildRecord marks the processes that prepare a task, which has no intent yet.
type BuildRecord struct {
	Nonce string `json:"nonce"`
}

// MarkDirty notes, for the host's provider, that there may be processes which
// only an agent can find. An agent that has ended everything takes it back.
func (d *Dir) MarkDirty() error {
	f, err := os.OpenFile(d.File(dirtyFile), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("mark host: %w", err)
	}
	return f.Close()
}

// MarkClean takes back what MarkDirty notes.
func (d *Dir) MarkClean() error {
	if err := os.Remove(d.File(dirtyFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("mark host: %w", err)
	}
	return nil
}

// TaskDir is the directory of one start of one task.
type TaskDir string

// File is the path of a file of the directory.
func (d TaskDir) File(name string) string { return filepath.Join(string(d), name) }

// Task is the directory of one start of a task, by its key.
func (d *Dir) Task(key string) TaskDir {
	return TaskDir(filepath.Join(d.Path, TasksDir, key))
}

// LastIntent returns the intent that was written last, nil if there was none.
func (d *Dir) LastIntent() (*Intent, error) {
	return d.FindIntent(func(*Intent) bool { return true })
}

// FindIntent returns the last intent of some, nil if there is none.
func (d *Dir) FindIntent(wanted func(*Intent) bool) (*Intent, error) {
	entries, err := os.ReadDir(d.File(TasksDir))
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	var last *Intent
	for _, e := range entries {
		var in Intent
		err := record.ReadJSON(d.Task(e.Name()).File(IntentFile), &in)
		if errors.Is(err, os.ErrNotExist) {
			continue // died before the intent was written: nothing was started
		}
		if err != nil {
			return nil, fmt.Errorf("read intent: %w", err)
		}
		if wanted(&in) && (last == nil || in.Ordinal > last.Ordinal) {
			last = &in
		}
	}
	return last, nil
}

// LastReport is the task report as it was when nothing was left to do for the
// task, nil if it has not come to that.
func (d TaskDir) LastReport() (*state.TaskReport, error) {
	var r state.TaskReport
	err := record.ReadJSON(d.File(ReportFile), &r)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read task report: %w", err)
	}
	return &r, nil
}

// Container is what a task runs in where its job names an image. The program
// that the shim runs is then the container runtime's client, which stays in the
// foreground: its output, its end and the signals that it gets are the task's.
// What the client leaves behind when it is killed is found by name.
type Container struct {
	Runtime string `json:"runtime"` // path of docker or podman
	Name    string `json:"name"`
}

// HostMark names a host among those of a machine, by its directory.
func (d *Dir) HostMark() string {
	sum := sha256.Sum256([]byte(d.Path))
	return hex.EncodeToString(sum[:8])
}

// RemoveAll removes all files and directories that match a pattern.
func RemoveAll(pattern string) error {
	found, err := filepath.Glob(pattern)
	for _, path := range found {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// HookTimeout is how long the hook of a task may take before the task is ended.
func (in *Intent) HookTimeout() time.Duration {
	if in.BeforeStop == nil {
		return 0
	}
	return time.Duration(in.BeforeStop.Timeout)
}
