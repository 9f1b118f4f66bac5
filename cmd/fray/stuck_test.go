package main

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const (
	// scriptPatience is how long a script may take, commandPatience how long a
	// command: far more than they need, and far less than the package has.
	scriptPatience  = 10 * time.Minute
	commandPatience = 8 * time.Minute
)

// watchdog ends the processes of a script that does not come to its end, so that
// the script fails and shows how far it came. What it returns calls it off.
func watchdog(t *testing.T, work string) (off func()) {
	over, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		timer := time.NewTimer(scriptPatience)
		defer timer.Stop()
		for {
			select {
			case <-over:
				return
			case <-timer.C:
				t.Errorf("%s has not ended after %s; its processes are killed", filepath.Base(work), scriptPatience)
				endProcesses(work)
				timer.Reset(time.Second) // it may start others
			}
		}
	}()
	return func() {
		close(over)
		<-gone
	}
}

// endStuck ends a command that was started and does not end by itself. It is
// asked for its goroutines first, which it writes to standard error. What is
// returned calls that off.
func endStuck(cmd *exec.Cmd) (off func()) {
	kill := time.AfterFunc(commandPatience+10*time.Second, func() { _ = cmd.Process.Kill() })
	ask := time.AfterFunc(commandPatience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	return func() {
		ask.Stop()
		kill.Stop()
	}
}
