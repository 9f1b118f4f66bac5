package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/schema"
)

// Spec is what an agent sends a shim, through a pipe: it may hold secrets.
type Spec struct {
	HostDir string          `json:"host_dir"`
	TaskDir hostdir.TaskDir `json:"task_dir"`
	Path    string          `json:"path"` // of the program
	Argv    []string        `json:"argv"`
	Env     []string        `json:"env"`
	WorkDir string          `json:"work_dir"`
	Grace   schema.Duration `json:"grace"`
	Nonce   string          `json:"nonce"`
	Secrets []string        `json:"secrets,omitempty"` // hidden in its output
	Hook    *Hook           `json:"hook,omitempty"`    // nil: none
}

// shim runs one command and outlives the agent that asked for it.
type shim struct {
	spec Spec
	host *hostdir.Dir
	pid  int // of the command, and its process group
	out  *output

	mu     sync.Mutex
	ended  bool         // the command was reaped
	killAt time.Time    // end of the grace once a stop was asked for
	hook   *runningHook // while it runs
}

// Run is the body of "fray task-shim": it reads what to run from in, starts
// it, writes one line to ready (which it closes) once the command runs, and
// returns when nothing of it is left and the exit record is written. It expects
// the task's lock at file descriptor 3. SIGTERM ends the command: SIGTERM to
// its group, SIGKILL to all of it after the grace.
func Run(in io.Reader, ready io.WriteCloser) error {
	// The command dies with the thread that starts it.
	runtime.LockOSThread()
	unix.CloseOnExec(hostdir.LockFD)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	// An agent that was killed has closed ready: without this, writing there would
	// kill this process, and the command with it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	var s shim
	if err := json.NewDecoder(in).Decode(&s.spec); err != nil {
		return fmt.Errorf("read task: %w", err)
	}
	host, err := hostdir.Find(s.spec.HostDir)
	if err != nil {
		return err
	}
	s.host = host
	if err := process.BecomeReaper(); err != nil {
		return err
	}
	started := time.Now()
	if err := s.start(); err != nil {
		return s.mustWriteExit(hostdir.ExitRecord{EndedAt: time.Now(), State: schema.TaskFailed, Reason: err.Error(), Swept: true})
	}
	done := make(chan struct{})
	go s.guard(signals, done)
	// A record that cannot be written must not keep the command from being
	// waited for: whatever comes, it has a parent that ends it.
	running := hostdir.ProcessRecord{Shim: os.Getpid(), PID: s.pid, StartedAt: started, Boot: process.BootID()}
	recordErr := record.Write(s.spec.TaskDir.File(hostdir.ProcessFile), running)
	readyErr := json.NewEncoder(ready).Encode(running)
	closeErr := ready.Close()
	status := s.reap()
	record := hostdir.ExitRecord{StartedAt: started, EndedAt: time.Now()}
	if status.Signaled() {
		record.Signal = unix.SignalName(status.Signal())
	} else {
		code := status.ExitStatus()
		record.ExitCode = &code
	}
	earlyErr := s.writeExit(record) // what follows may take the whole grace, and this process may be killed in it
	s.awaitHook()
	s.reapLeftovers()
	close(done)
	outputErr := s.out.finish()
	record.Swept = true
	if errors.Is(readyErr, syscall.EPIPE) {
		readyErr = nil // the agent died; the next one adopts this task
	}
	if err := s.mustWriteExit(record); err != nil {
		return errors.Join(err, earlyErr, outputErr, recordErr, readyErr, closeErr)
	}
	return errors.Join(outputErr, recordErr, readyErr, closeErr)
}

// start starts the command in its own process group with its output in the log.
func (s *shim) start() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("start command: %w", err)
	}
	log, err := openLog(s.spec.TaskDir.File(hostdir.OutputFile), s.spec.TaskDir.File(hostdir.TimesFile))
	if err != nil {
		return errors.Join(fmt.Errorf("start command: %w", err), null.Close())
	}
	if s.out, err = copyOutput(log, s.spec.Secrets); err != nil {
		log.close()
		return errors.Join(fmt.Errorf("start command: %w", err), null.Close())
	}
	output := s.out.command
	attr := &syscall.SysProcAttr{Setpgid: true}
	process.DieWithParent(attr)
	pid, err := syscall.ForkExec(s.spec.Path, s.spec.Argv, &syscall.ProcAttr{
		Dir:   s.spec.WorkDir,
		Env:   s.spec.Env,
		Files: []uintptr{null.Fd(), output.Fd(), output.Fd()},
		Sys:   attr,
	})
	closeErr := null.Close()
	if err != nil {
		return errors.Join(fmt.Errorf("start command: %w", err), closeErr, s.out.finish())
	}
	s.pid = pid
	return closeErr
}

// guardInterval is the time between two checks that the host's directory is there.
const guardInterval = 500 * time.Millisecond

// guard ends the command when a signal asks for it or the host's directory is gone.
func (s *shim) guard(signals <-chan os.Signal, done <-chan struct{}) {
	runtime.LockOSThread() // a hook dies with the thread that starts it
	tick := time.NewTicker(guardInterval)
	defer tick.Stop()
	var grace, bound <-chan time.Time
	var hooked <-chan struct{}
	var hook *runningHook
	stopping := false
	terminate := func() {
		bound, hooked = nil, nil
		wait := time.Duration(s.spec.Grace)
		grace = time.After(wait)
		s.terminate(time.Now().Add(wait))
	}
	for {
		select {
		case <-done:
			return
		case <-signals:
			if stopping {
				continue
			}
			stopping = true
			if hook = s.startHook(); hook == nil {
				terminate()
				continue
			}
			hooked, bound = hook.ended, time.After(time.Until(hook.until))
		case <-hooked:
			s.finishHook(hook, false)
			terminate()
		case <-bound:
			s.finishHook(hook, true)
			terminate()
		case <-grace:
			s.kill()
		case <-tick.C:
			if s.host.Gone() {
				s.kill()
			}
		}
	}
}

func (s *shim) terminate(killAt time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killAt, s.hook = killAt, nil
	if !s.ended {
		// The only error is that it may not be signalled, and then SIGKILL
		// after the grace fails as well: there is nothing better to do.
		_ = process.Signal(-s.pid, unix.SIGTERM)
		_ = process.Signal(-s.pid, unix.SIGCONT)
	}
}

// kill ends everything below this process now.
func (s *shim) kill() {
	s.mu.Lock()
	s.killAt = time.Now()
	ended := s.ended
	s.mu.Unlock()
	if !ended {
		_ = process.Signal(-s.pid, unix.SIGKILL)
	}
	s.killDescendants()
}

func (s *shim) killDescendants() {
	all, err := process.List()
	if err != nil {
		return // tried again after the next child is reaped
	}
	for _, pid := range process.Descendants(all, os.Getpid()) {
		_ = process.Signal(pid, unix.SIGKILL)
	}
	if process.InheritsOrphans {
		return
	}
	for _, pid := range process.Leftovers(all, process.Traces{Session: os.Getpid(), Group: s.pid, Nonce: s.spec.Nonce}) {
		_ = process.Signal(pid, unix.SIGKILL)
	}
}

// reap waits for the command, burying orphans on the way.
func (s *shim) reap() syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if pid == s.pid {
			s.mu.Lock()
			s.ended = true
			s.mu.Unlock()
			return status
		}
		if err == nil {
			s.reaped(pid, status)
		}
		if errors.Is(err, syscall.ECHILD) {
			return status // cannot be: the command is our child until it is reaped here
		}
	}
}

// reapLeftovers returns when nothing that the command started is left. During
// a stop its group may still use the grace; otherwise the command's end is theirs.
func (s *shim) reapLeftovers() {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		s.mu.Lock()
		killAt := s.killAt
		s.mu.Unlock()
		if process.InheritsOrphans && buried() || !time.Now().Before(killAt) || !process.GroupAlive(s.pid) {
			break
		}
		<-tick.C
	}
	if process.InheritsOrphans && buried() {
		return
	}
	// Every round kills all that is there and waits for one of them; what a
	// dying process still started is found in the next round.
	for {
		if process.GroupAlive(s.pid) {
			_ = process.Signal(-s.pid, unix.SIGKILL)
		}
		s.killDescendants()
		if _, err := syscall.Wait4(-1, nil, 0, nil); errors.Is(err, syscall.ECHILD) {
			return
		}
	}
}

// buried reaps what has ended and reports whether there are no children left.
func buried() bool {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.ECHILD):
			return true
		case err == nil && pid == 0:
			return false
		}
	}
}

func (s *shim) writeExit(r hostdir.ExitRecord) error {
	if s.host.Gone() {
		return nil // nothing is left that reads it
	}
	r.Reason = hostdir.Clipped(r.Reason)
	if err := record.Write(s.spec.TaskDir.File(hostdir.ExitFile), r); err != nil {
		return fmt.Errorf("record end of %s: %w", filepath.Base(string(s.spec.TaskDir)), err)
	}
	return nil
}

// Times of a record that cannot be written.
const (
	recordRetry = 250 * time.Millisecond
	// recordPatience bounds the tries on a disk that is not full but broken.
	recordPatience = time.Minute
)

// mustWriteExit writes the record of the end, on a full disk as often as it takes
// until there is space. The task counts as running meanwhile.
func (s *shim) mustWriteExit(r hostdir.ExitRecord) error {
	tick := time.NewTicker(recordRetry)
	defer tick.Stop()
	for deadline := time.Now().Add(recordPatience); ; <-tick.C {
		err := s.writeExit(r)
		full := errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
		if err == nil || !full && time.Now().After(deadline) {
			return err
		}
	}
}
