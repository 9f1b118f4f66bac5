package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Names in a host's directory.
const (
	agentLockFile  = "agent.lock"
	taskLockFile   = "task.lock"
	agentStateFile = "agent.json"
	preemptedFile  = "preempted"
	dirtyFile      = "dirty"
	buildFile      = "build.json"
	tasksDir       = "tasks"
	bundlesDir     = "bundles"
	callablesDir   = "callables"
	execsDir       = "execs" // a file for each command that runs beside a task, named by its nonce

	intentFile  = "task.json"
	processFile = "process.json"
	stopFile    = "stop.json"
	exitFile    = "exit.json"
	reportFile  = "report.json"
	outputFile  = "output.log"
	healthFile  = "health.json"
	envFile     = "env" // of a container; gone when the task is
	// identityFile is what the task's actors prove their namespace with; gone
	// when the task is.
	identityFile = identityDir + "/actor.pem"
	identityDir  = "identity"
	// terminationFile is where the task may record why it ended.
	terminationFile = terminationDir + "/termination.json"
	terminationDir  = "termination"
)

// hostDir is the directory of one host.
type hostDir struct {
	path string
	info os.FileInfo
}

func openHostDir(path string) (*hostDir, error) {
	if err := os.MkdirAll(filepath.Join(path, tasksDir), 0o700); err != nil {
		return nil, fmt.Errorf("open host directory: %w", err)
	}
	return findHostDir(path)
}

// findHostDir is openHostDir for one that must be there.
func findHostDir(path string) (*hostDir, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open host directory: %w", err)
	}
	return &hostDir{path: path, info: info}, nil
}

// gone reports whether the directory was removed or another put in its place.
// An error other than absence says nothing.
func (d *hostDir) gone() bool {
	info, err := os.Stat(d.path)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	return !os.SameFile(info, d.info)
}

func (d *hostDir) file(name string) string { return filepath.Join(d.path, name) }

// agentState is what an agent remembers across its own restarts.
type agentState struct {
	// SeqLimit is above every Seq that was ever reported: numbers are
	// taken in blocks, so that a report costs no write here.
	SeqLimit uint64 `json:"seq_limit"`
	Seen     mark   `json:"seen"` // highest assignment seen
	Done     mark   `json:"done"` // carried out: everything older has ended
	Ports    [2]int `json:"ports"`
	// ClusterPort is where tasks find the cluster API.
	ClusterPort int `json:"cluster_port,omitempty"`
}

// mark places an assignment among others.
type mark struct {
	Epoch      uint64 `json:"epoch"`
	Generation int64  `json:"generation"`
}

// before reports whether m is older than other.
func (m mark) before(other mark) bool {
	if m.Epoch != other.Epoch {
		return m.Epoch < other.Epoch
	}
	return m.Generation < other.Generation
}

// loadState returns the state as it was saved last, a new one where there is none.
// A damaged one is an error beside a new one: what the agent must do is in the store.
func (d *hostDir) loadState() (agentState, error) {
	var s agentState
	err := readRecord(d.file(agentStateFile), &s)
	if errors.Is(err, os.ErrNotExist) {
		return agentState{}, nil
	}
	if err != nil {
		return agentState{}, fmt.Errorf("read the agent's state: %w", err)
	}
	return s, nil
}

func (d *hostDir) saveState(s agentState) error {
	return writeRecord(d.file(agentStateFile), s)
}

// intent is what an agent is about to start, written before it does. It holds
// no command and no environment: those may be secret.
type intent struct {
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
	Actor      bool            `json:"actor,omitempty"`  // it hosts one
	// WorkDir and Venv are what was prepared for the command.
	WorkDir string `json:"work_dir,omitempty"`
	Venv    string `json:"venv,omitempty"`
	// Container is what the command runs in, if not on the host itself.
	Container *container `json:"container,omitempty"`
}

// processRecord is the shim's word that the command runs.
type processRecord struct {
	Shim      int       `json:"shim"` // pid and session of the shim
	PID       int       `json:"pid"`  // of the command; its process group too
	StartedAt time.Time `json:"started_at"`
	// Boot is the machine's boot; "" where that is not known.
	Boot string `json:"boot,omitempty"`
}

// rebooted reports whether the machine was booted since: the process ids are of
// other processes now. Boot is the machine's now.
func (r *processRecord) rebooted(boot string) bool {
	return r.Boot != "" && boot != "" && r.Boot != boot
}

// stopRecord says why the agent ended a task, before it does.
type stopRecord struct {
	State  schema.TaskState `json:"state"`
	Reason string           `json:"reason"`
	At     time.Time        `json:"at"`
}

// exitRecord says how a task's command ended. It is written as soon as that is
// known, and once more when nothing of the task is left.
type exitRecord struct {
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at"`
	ExitCode  *int      `json:"exit_code,omitempty"`
	Signal    string    `json:"signal,omitempty"`
	// State is set where there is no code or signal to judge by: the command
	// did not start, or it was lost with its shim.
	State  schema.TaskState `json:"state,omitempty"`
	Reason string           `json:"reason,omitempty"`
	// Swept says that nothing of the task is left.
	Swept bool `json:"swept,omitempty"`
}

// maxReason is the length of a reason in a record, in bytes: a record has room for
// so much and no more.
const maxReason = 2000

// clipped is a reason that fits into a record.
func clipped(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxReason], "") + " …"
}

// buildRecord marks the processes that prepare a task, which has no intent yet.
type buildRecord struct {
	Nonce string `json:"nonce"`
}

// markDirty says, for the host's provider, that there may be processes which
// only an agent can find. An agent that has ended everything takes it back.
func (d *hostDir) markDirty() error {
	f, err := os.OpenFile(d.file(dirtyFile), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("mark host: %w", err)
	}
	return f.Close()
}

func (d *hostDir) markClean() error {
	if err := os.Remove(d.file(dirtyFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("mark host: %w", err)
	}
	return nil
}

// taskDir is the directory of one start of one task.
type taskDir string

func (d taskDir) file(name string) string { return filepath.Join(string(d), name) }

func (d *hostDir) taskDir(key string) taskDir {
	return taskDir(filepath.Join(d.path, tasksDir, key))
}

// lastIntent returns the intent that was written last, nil if there was none.
func (d *hostDir) lastIntent() (*intent, error) {
	return d.findIntent(func(*intent) bool { return true })
}

// findIntent returns the last intent of some, nil if there is none.
func (d *hostDir) findIntent(wanted func(*intent) bool) (*intent, error) {
	entries, err := os.ReadDir(d.file(tasksDir))
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	var last *intent
	for _, e := range entries {
		var in intent
		err := readJSON(d.taskDir(e.Name()).file(intentFile), &in)
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

// lastReport is the task report as it was when nothing was left to do for the
// task, nil if it has not come to that.
func (d taskDir) lastReport() (*state.TaskReport, error) {
	var r state.TaskReport
	err := readJSON(d.file(reportFile), &r)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read task report: %w", err)
	}
	return &r, nil
}

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// writeJSON replaces the file at path; after a crash it is the old or the new one.
func writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := durable.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
