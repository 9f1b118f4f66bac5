package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/terminal"
	"github.com/fray-ml/fray/terminal/terminaltest"
)

// typist is a fray with a user at a real terminal.
type typist struct {
	*os.File // the keyboard, and the screen
	slave    *os.File
	before   unix.Termios // its modes before fray began
	cmd      *exec.Cmd
	seen     string
}

func atTerminal(t *testing.T, dir string, args ...string) *typist {
	t.Helper()
	needsFray(t)
	master, slave := terminaltest.Open(t)
	before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), fray, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "NO_COLOR=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &typist{File: master, slave: slave, before: *before, cmd: cmd}
}

// sees reads the screen until something has appeared since the last time, and
// returns what stands before it.
func (s *typist) sees(t *testing.T, want string) string {
	t.Helper()
	watchdog := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill(); _ = s.slave.Close(); _ = s.Close() })
	defer watchdog.Stop()
	buf := make([]byte, 4096)
	for !strings.Contains(s.seen, want) {
		n, err := s.Read(buf)
		if err != nil {
			t.Fatalf("the screen shows no %q (%v):\n%s", want, err, s.seen)
		}
		s.seen += string(buf[:n])
	}
	before, after, _ := strings.Cut(s.seen, want)
	s.seen = after
	return before
}

func (s *typist) types(t *testing.T, keys string) {
	t.Helper()
	if _, err := s.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

func (s *typist) echoes(t *testing.T) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(s.slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

// ends waits for the end, and reads on: a process that cannot write does not end.
func (s *typist) ends(t *testing.T, want int) {
	t.Helper()
	go func() { _, _ = io.Copy(io.Discard, s.File) }() // until it is closed
	defer endStuck(s.cmd)()
	_ = s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); got != want {
		t.Errorf("exit code %d, want %d", got, want)
	}
}

const asksTwice = `
variable "a_size" {
  type = number
}
variable "b_token" {
  type      = string
  sensitive = true
}
output "size" {
  value = var.a_size
}
`

const (
	keyInterrupt = "\x03"
	ctrlD        = "\x04"
)

// The end of the input counts as no answer.
func TestEndOfInputAtAPrompt(t *testing.T) {
	dir := t.TempDir()
	writeConfig(t, dir, asksTwice)
	s := atTerminal(t, dir, "apply")
	s.sees(t, "Value (number): ")
	s.types(t, ctrlD)
	s.sees(t, "Variable without a value")
	s.ends(t, terminal.ExitError)
}

func TestPromptHidesWhatIsSensitive(t *testing.T) {
	dir := t.TempDir()
	writeConfig(t, dir, asksTwice)
	s := atTerminal(t, dir, "plan")
	s.sees(t, "Value (number): ")
	s.types(t, "7\n")
	s.sees(t, "7")
	s.sees(t, "Value: ")
	s.hides(t)
	s.types(t, "sesame\n")
	if shown := s.sees(t, "Plan: outputs change"); strings.Contains(shown, "sesame") {
		t.Errorf("the screen shows the sensitive answer:\n%s", shown)
	}
	s.ends(t, 0)
	if !s.echoes(t) {
		t.Error("the terminal shows nothing that is typed any more")
	}
}

// hides waits until the terminal does not show what is typed.
func (s *typist) hides(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(patience); s.echoes(t); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the terminal shows what is typed")
		}
	}
}

// Ctrl-C at a question ends with nothing done, and leaves the terminal as it was.
func TestCtrlCAtAPrompt(t *testing.T) {
	for _, test := range []struct {
		name   string
		before string // typed at the first question
	}{{"shown", ""}, {"hidden", "7\n"}} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			writeConfig(t, dir, asksTwice)
			s := atTerminal(t, dir, "apply")
			s.sees(t, "Value (number): ")
			if test.before != "" {
				s.types(t, test.before)
				s.sees(t, "Value: ")
				s.hides(t)
			}
			s.types(t, keyInterrupt)
			s.sees(t, "interrupted; nothing was done")
			s.ends(t, terminal.ExitInterrupted)
			if !s.echoes(t) {
				t.Error("the terminal shows nothing that is typed any more")
			}
			if _, err := os.Stat(filepath.Join(dir, ".fray")); err == nil {
				t.Error("a state was made")
			}
		})
	}
}
