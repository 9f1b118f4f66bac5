package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/shim"
)

// launch starts the shim, which starts the command. The channel closes when
// the shim is gone.
func (s *supervision) launch(ctx context.Context, spec *shim.Spec) (<-chan struct{}, error) {
	h := s.task.host
	lock, err := hostdir.WaitLock(ctx, h.Dir.File(hostdir.TaskLockFile))
	if err != nil {
		return nil, fmt.Errorf("start task: %w", err)
	}
	defer lock.Close() // the shim has its own
	if err := errors.Join(h.Dir.MarkDirty(), hostdir.ReserveHolder(lock)); err != nil {
		return nil, err
	}
	if err := s.task.writeIntent(); err != nil {
		return nil, err
	}
	h.FreePorts()
	if s.task.in.Task == 0 && s.task.in.TPU {
		if err := checkServed(s.task.run); err != nil {
			return nil, err
		}
	}
	cmd, ready, err := shimCommand(h.Executable, spec, lock)
	if err != nil {
		return nil, err
	}
	err = cmd.Start()
	closeErr := cmd.Stdout.(io.Closer).Close()
	if err := errors.Join(err, closeErr); err != nil {
		return nil, errors.Join(fmt.Errorf("start task: %w", err), ready.Close())
	}
	who := hostdir.Holder{
		PID: cmd.Process.Pid, Grace: (time.Duration(spec.Grace) + s.task.in.HookTimeout()).Seconds(),
		Ports: slices.Sorted(maps.Values(s.task.in.Ports)), Dir: s.task.host.Dir.Path,
	}
	if err := hostdir.WriteHolder(lock, who); err != nil {
		h.Log.Error("task's supervisor not recorded", "error", err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if err := cmd.Wait(); err != nil {
			h.Log.Warn("task's supervisor", "error", err)
			s.mu.Lock()
			s.shimEnd = err.Error()
			s.mu.Unlock()
		}
	}()
	// Ends with a record when the command runs and without one when it does not;
	// a supervisor of another version may send an empty line.
	line, err := io.ReadAll(ready)
	if err != nil {
		h.Log.Warn("task's supervisor", "error", err)
	}
	var running hostdir.ProcessRecord
	if json.Unmarshal(line, &running) == nil && running.PID > 1 {
		s.running = &running
	}
	ready.Close()
	return gone, nil
}

// shimCommand is the shim's process, in a session of its own. What it must
// know, secrets among it, goes through its standard input.
func shimCommand(executable string, spec *shim.Spec, lock *os.File) (*exec.Cmd, *os.File, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, nil, fmt.Errorf("start task: %w", err)
	}
	ready, done, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("start task: %w", err)
	}
	cmd := exec.Command(executable, "task-shim")
	cmd.Dir = "/"
	cmd.Env = command.WithoutFray(os.Environ())
	cmd.Stdin = bytes.NewReader(data)
	cmd.Stdout = done
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, ready, nil
}
