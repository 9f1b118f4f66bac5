package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/terminal"
)

// applied is the directory of a stack that runs.
func applied(t *testing.T, config string) string {
	t.Helper()
	dir := t.TempDir()
	writeConfig(t, dir, config)
	if _, stderr, code := frayIn(t, dir, "apply", "--auto-approve"); code != 0 {
		t.Fatalf("apply: exit code %d: %s", code, stderr)
	}
	t.Cleanup(func() {
		// The test's context is over by now.
		cmd := exec.Command(fray, "destroy", "--auto-approve")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("destroy: %v: %s", err, out)
		}
		endProcesses(dir)
	})
	return dir
}

// A command on a terminal has one of the same size, which follows fray's; keys
// are its own, and fray's terminal is as before in the end.
func TestExecAtATerminal(t *testing.T) {
	t.Parallel()
	dir := applied(t, sleeper)
	s := atTerminal(t, dir, "exec", "job.one", "--", "sh", "-c",
		`trap 'stty size' WINCH; trap 'echo caught; exit 5' INT; stty size; echo ready; while :; do sleep 0.02; done`)
	if size := s.sees(t, "ready"); !strings.Contains(size, "24 80") && !strings.Contains(size, "0 0") {
		t.Errorf("the command's terminal says %q", size)
	}
	if err := unix.IoctlSetWinsize(int(s.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 31, Col: 97}); err != nil {
		t.Fatal(err)
	}
	s.sees(t, "31 97")
	s.types(t, "\x03")
	s.sees(t, "caught")
	s.ends(t, 5)
	after, err := unix.IoctlGetTermios(int(s.slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	if s.before != *after {
		t.Errorf("the terminal was %+v and is %+v", s.before, *after)
	}
}

// Without a terminal the first Ctrl-C is the command's, and the second ends the
// call with all that the command has started.
func TestExecInterrupted(t *testing.T) {
	t.Parallel()
	dir := applied(t, sleeper)
	mark := filepath.Join(dir, "interrupted")
	cmd := exec.CommandContext(t.Context(), fray, "exec", "job.one", "--", "sh", "-c",
		`trap 'echo x > `+mark+`' INT; trap '' HUP; echo $$; while :; do sleep 0.02; done`)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 100)
	if _, err := out.Read(buffer); err != nil {
		t.Fatal(err)
	}
	interrupt := func() {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	interrupt()
	deadline := time.After(patience)
	for tick := time.Tick(10 * time.Millisecond); ; {
		if _, err := os.Stat(mark); err == nil {
			break
		}
		select {
		case <-deadline:
			t.Fatal("the command did not get the first Ctrl-C")
		case <-tick:
		}
	}
	interrupt()
	defer endStuck(cmd)()
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != terminal.ExitInterrupted {
		t.Errorf("fray ended with %v, want exit code %d", err, terminal.ExitInterrupted)
	}
}
