package profiler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/profile"
)

// Order is what is to be measured, and of which task.
type Order struct {
	Kind     profile.Kind  `json:"kind"`
	Duration time.Duration `json:"duration"`
	PID      int           `json:"pid,omitempty"` // 0: the main process
	Rate     int           `json:"rate"`          // samples in a second

	Session   int    `json:"session"` // of the task's supervisor
	Group     int    `json:"group"`   // of the task's command, whose process id it is
	Nonce     string `json:"nonce"`   // of the task's processes
	Container int    `json:"container,omitempty"`

	Sockets string `json:"sockets"`           // see profileserver.Variable
	Address string `json:"address,omitempty"` // of the port named pprof, "" without

	Path     string `json:"path"`      // of the task: py-spy may be there
	CacheDir string `json:"cache_dir"` // where py-spy is installed if it is nowhere else
}

// Bounds of an order.
const (
	MaxDuration     = 30 * time.Minute
	DefaultDuration = 30 * time.Second
	DefaultRate     = 100
	MaxRate         = 1000
)

// PprofPort is the name of a job's port at which the job serves net/http/pprof.
const PprofPort = "pprof"

// Exit codes of a profiler.
const (
	exitDone   = 0
	exitFailed = 1
)

// Run measures, writes header and profile to out and messages to notes, and returns an exit code.
// The first interrupt ends the measuring, with what was measured until then.
func Run(ctx context.Context, order Order, out, notes io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	interrupted, stopInterrupts := signal.NotifyContext(ctx, syscall.SIGINT)
	defer stopInterrupts()
	m := measurement{Order: order, out: out, notes: notes, interrupted: interrupted}
	if err := m.run(ctx); err != nil {
		fmt.Fprintln(notes, err)
		return exitFailed
	}
	return exitDone
}

// measurement is an order that is being carried out.
type measurement struct {
	Order

	out, notes  io.Writer
	interrupted context.Context
}

// note tells the user something.
func (m *measurement) note(format string, args ...any) { fmt.Fprintf(m.notes, format+"\n", args...) }

func (m *measurement) run(ctx context.Context) error {
	candidates, err := m.candidates()
	if err != nil {
		return err
	}
	if m.Kind == profile.Stacks {
		return m.stacks(ctx, candidates)
	}
	chosen, err := choose(candidates, m.PID)
	if err != nil {
		return err
	}
	switch chosen.language {
	case python:
		if m.Kind == profile.Memory {
			return m.served(ctx, chosen, pythonMemory)
		}
		return m.recordPython(ctx, chosen)
	case golang:
		return m.served(ctx, chosen, goProfile)
	case native:
	}
	return m.nothingFor(chosen)
}

// nothingFor explains why a process cannot be measured.
func (m *measurement) nothingFor(c candidate) error {
	return fmt.Errorf("process %d (%s) is neither Python nor Go, of which fray measures processor time and memory; "+
		"--type stacks shows where its threads are, and fray exec runs other profilers beside it, such as perf record -g -p %d", c.PID, c.program, c.PID)
}

// candidates are the living processes of the task.
func (m *measurement) candidates() ([]candidate, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("profiles are taken on hosts with Linux; this one has %s", runtime.GOOS)
	}
	all, err := process.List()
	if err != nil {
		return nil, err
	}
	pids := process.Leftovers(all, process.Traces{Session: m.Session, Group: m.Group, Nonce: m.Nonce})
	root := m.Group
	if m.Container != 0 { // the command is the client of the container's runtime
		root = m.Container
		pids = append(process.Descendants(all, root), root)
	}
	found := describe(all, pids, root)
	if len(found) == 0 {
		return nil, errors.New("the task has no process any more; fray status shows how it ended")
	}
	return found, nil
}
