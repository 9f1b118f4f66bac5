package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/filelock"
)

// host is the directory of one host.
type host struct {
	dir string
}

// holder is what a lock file states about the process that holds the lock; true
// only while it is held.
type holder struct {
	PID   int     `json:"pid"`
	Grace float64 `json:"grace,omitempty"` // seconds that ending it may take
	End   bool    `json:"end,omitempty"`   // it only ends what is left on the host
	// Starter states that it holds the lock only for a moment: to start the agent,
	// or to change the slice.
	Starter bool   `json:"starter,omitempty"`
	Ports   []int  `json:"ports,omitempty"` // that its task was given
	Dir     string `json:"dir,omitempty"`   // of the host, as its agent got it
}

// errorTail is how much of an agent's log is read for its last error, in bytes.
const errorTail = 4096

// emulatorVariable names where an emulated cloud is.
const emulatorVariable = "FRAY_GCP_ENDPOINT"

// servesElsewhere reports whether an agent serves another directory than the one
// that its lock lies in: the directory was renamed, and the agent has yet to end.
// An error other than absence decides nothing.
func (w holder) servesElsewhere(dir string) bool {
	if w.Dir == "" || w.Dir == dir {
		return false
	}
	here, err := os.Stat(dir)
	if err != nil {
		return false
	}
	there, err := os.Stat(w.Dir)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	return !os.SameFile(here, there)
}

// serves reports whether the host has an agent that serves it, or is about to have
// one, and which process that is. An agent of a directory that was renamed does
// not serve it.
func (h host) serves() (holder, bool, error) {
	who, held, err := h.agent()
	return who, held && !who.servesElsewhere(h.dir), err
}

// agentAlive reports whether the host has an agent's process, or is about to: who
// was suspended while it started one is not.
func (h host) agentAlive() (bool, error) {
	_, held, err := h.agent()
	return held, err
}

// agent is who holds the agent's lock, false when nothing that will serve does.
func (h host) agent() (holder, bool, error) {
	f, err := os.Open(filepath.Join(h.dir, agentLockFile))
	if errors.Is(err, os.ErrNotExist) {
		return holder{}, false, nil
	}
	if err != nil {
		return holder{}, false, fmt.Errorf("open lock: %w", err)
	}
	defer f.Close()
	held, err := filelock.IsHeldOpen(f)
	who := readHolder(f)
	return who, held && !who.leftBehind(), err
}

func (h host) taskAlive() (bool, error) { return filelock.IsHeld(filepath.Join(h.dir, taskLockFile)) }

// alive reports whether any process of the host is.
func (h host) alive() (bool, error) {
	agent, err := h.agentAlive()
	if err != nil || agent {
		return agent, err
	}
	return h.taskAlive()
}

// holderOf returns the holder of a lock of the host, false when it has none or the
// holder is only just being started.
func (h host) holderOf(lock string) (holder, bool) {
	path := filepath.Join(h.dir, lock)
	held, err := filelock.IsHeld(path)
	if err != nil || !held {
		return holder{}, false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return holder{}, false
	}
	var who holder
	if err := json.Unmarshal(data, &who); err != nil || who.PID <= 1 || who.Starter {
		return holder{}, false
	}
	return who, true
}

func signal(pid int, sig unix.Signal) error {
	if err := unix.Kill(pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %s to process %d: %w", unix.SignalName(sig), pid, err)
	}
	return nil
}

// startAgent starts the agent of a host unless it lives. The agent's lock is
// taken here and inherited, so that an agent which was started counts as alive
// until it takes the lock for itself. With end it only ends what is left.
func (p *Provider) startAgent(r *record, n int, end bool) error {
	h := p.slice(r.Spec.Name).host(n)
	// Not with the slice's: it may be gone where one was suspended here.
	for _, dir := range []string{filepath.Dir(h.dir), h.dir} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("start agent: %w", err)
		}
	}
	lock, err := p.takeAgentLock(h)
	if errors.Is(err, filelock.ErrHeld) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("start agent: %w", err)
	}
	defer lock.file.Close() // the agent has its own, and what the file states is the agent's
	log, err := os.OpenFile(filepath.Join(h.dir, agentLogFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("start agent: %w", err)
	}
	defer log.Close()
	args := p.agentArgs(r.Spec.Name, n, h.dir, r.Addresses[n])
	if len(r.GPUs) > 0 {
		args = append(args, "--gpus", joined(r.GPUs))
	}
	if end {
		args = append(args, "--end")
	}
	cmd := exec.Command(p.config.Executable, args...)
	cmd.Dir = "/"
	cmd.Env = append(withoutFray(os.Environ()), "FRAY_AGENT_LOCK_FD=3")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock.file}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start agent: %w", err)
	}
	go func() { _ = cmd.Wait() }() // only to bury it: its lock states that it is dead
	return nil
}

// takeAgentLock takes the agent's lock. A process that only checks it holds it for an
// instant, hence the second try.
func (p *Provider) takeAgentLock(h host) (*hold, error) {
	path := filepath.Join(h.dir, agentLockFile)
	lock, err := p.takeFrom(path)
	for range 5 {
		if !errors.Is(err, filelock.ErrHeld) {
			break
		}
		<-time.After(time.Millisecond)
		lock, err = p.takeFrom(path)
	}
	return lock, err
}

func (p *Provider) agentArgs(name string, n int, dir, address string) []string {
	args := []string{
		"agent", "--store", p.config.StoreLocation, "--slice", name, "--host", strconv.Itoa(n),
		"--dir", dir, "--address", address, "--simulated",
	}
	for _, each := range []struct{ flag, value string }{
		{"--key-file", p.config.KeyFile},
		{"--work-dir", p.config.WorkDir},
		{"--cache-dir", p.config.CacheDir},
		{"--workspace", p.config.Workspace},
	} {
		if each.value != "" {
			args = append(args, each.flag, each.value)
		}
	}
	return args
}

// lastError is the error with which the host's agent ended last, "" if it ended with none.
func (h host) lastError() string {
	path := filepath.Join(h.dir, agentLogFile)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	log, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer log.Close()
	if size, err := log.Seek(0, io.SeekEnd); err == nil {
		_, _ = log.Seek(max(0, size-errorTail), io.SeekStart)
	}
	tail, err := io.ReadAll(io.LimitReader(log, errorTail))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(tail)), "\n")
	text, failed := strings.CutPrefix(lines[len(lines)-1], "Error: ")
	if !failed { // it was killed, or ended as it should
		return ""
	}
	return text
}

// withoutFray drops what is meant for the command that the user typed: an agent outlives it, and
// hands its environment to tasks. Where an emulated cloud is holds for agents, too: their store may
// be there.
func withoutFray(env []string) []string {
	var kept []string
	for _, entry := range env {
		if !strings.HasPrefix(entry, "FRAY_") || strings.HasPrefix(entry, emulatorVariable+"=") {
			kept = append(kept, entry)
		}
	}
	return kept
}
