package agent

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
	"strings"
	"syscall"
	"time"
)

// launch starts the shim, which starts the command. The channel closes when
// the shim is gone.
func (t *task) launch(ctx context.Context, spec *shimSpec) (<-chan struct{}, error) {
	a := t.agent
	lock, err := waitLock(ctx, a.dir.file(taskLockFile))
	if err != nil {
		return nil, fmt.Errorf("start task: %w", err)
	}
	defer lock.Close() // the shim has its own
	if err := errors.Join(a.dir.markDirty(), reserveHolder(lock)); err != nil {
		return nil, err
	}
	if err := t.writeIntent(); err != nil {
		return nil, err
	}
	cmd, ready, err := t.shimCommand(spec, lock)
	if err != nil {
		return nil, err
	}
	a.ports.release()
	err = cmd.Start()
	closeErr := cmd.Stdout.(io.Closer).Close()
	if err := errors.Join(err, closeErr); err != nil {
		return nil, errors.Join(fmt.Errorf("start task: %w", err), ready.Close())
	}
	who := holder{
		PID: cmd.Process.Pid, Grace: time.Duration(spec.Grace).Seconds(),
		Ports: slices.Sorted(maps.Values(t.in.Ports)), Dir: t.agent.dir.path,
	}
	if err := writeHolder(lock, who); err != nil {
		a.Log.Error("task's supervisor not recorded", "error", err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if err := cmd.Wait(); err != nil {
			a.Log.Warn("task's supervisor", "error", err)
			t.mu.Lock()
			t.shimEnd = err.Error()
			t.mu.Unlock()
		}
	}()
	// Ends with a record when the command runs and without one when it does not;
	// a supervisor of another version may send an empty line.
	line, err := io.ReadAll(ready)
	if err != nil {
		a.Log.Warn("task's supervisor", "error", err)
	}
	var running processRecord
	if json.Unmarshal(line, &running) == nil && running.PID > 1 {
		t.running = &running
	}
	ready.Close()
	return gone, nil
}

// shimCommand is the shim's process, in a session of its own. What it must
// know, secrets among it, goes through its standard input.
func (t *task) shimCommand(spec *shimSpec, lock *os.File) (*exec.Cmd, *os.File, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, nil, fmt.Errorf("start task: %w", err)
	}
	ready, done, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("start task: %w", err)
	}
	cmd := exec.Command(t.agent.Executable, "task-shim")
	cmd.Dir = "/"
	cmd.Env = withoutFray(os.Environ())
	cmd.Stdin = bytes.NewReader(data)
	cmd.Stdout = done
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, ready, nil
}

func withoutFray(env []string) []string {
	var kept []string
	for _, entry := range env {
		if !strings.HasPrefix(entry, "FRAY_") {
			kept = append(kept, entry)
		}
	}
	return kept
}
