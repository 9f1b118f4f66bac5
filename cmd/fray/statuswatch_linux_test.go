package main

import (
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestStatusScreen drives status --watch on a real terminal: it shows what is
// there, follows what happens, its keys and the terminal's size, and leaves the
// terminal as it was.
func TestStatusScreen(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() { endProcesses(dir) })
	writeConfig(t, dir, screenConfig("one"))
	do(t, dir, "apply", "--auto-approve")
	s := atTerminal(t, dir, "status", "--watch")
	s.draws(t, "Jobs")
	s.draws(t, "job.one")

	// What an apply brings is shown without a key.
	writeConfig(t, dir, screenConfig("one")+screenConfig("later"))
	do(t, dir, "apply", "--auto-approve")
	s.draws(t, "job.later")

	// Enter opens the job, which writes something, and Esc goes back.
	s.types(t, "/job.one\r\r")
	s.draws(t, "hello from one")
	s.draws(t, "began: first start")
	s.types(t, "\x1b")
	s.draws(t, `only "job.one"`)
	s.types(t, "\x1b")
	s.draws(t, "q quit")

	s.types(t, "?")
	s.draws(t, "Press any key to go back")
	s.types(t, " ")
	s.draws(t, "q quit")
	s.types(t, "/later\r")
	s.draws(t, `only "later"`)
	s.types(t, "\x1b")
	s.draws(t, "q quit")
	s.types(t, "\t")
	s.draws(t, "▶ Slices")
	s.types(t, "q")
	s.ends(t, 0)
	if !s.echoes(t) {
		t.Error("the terminal shows nothing that is typed any more")
	}
	if coloured := regexp.MustCompile(`\x1b\[[0-9;]*m`).FindString(s.seen); strings.Trim(coloured, "\x1b[0m") != "" {
		t.Errorf("NO_COLOR is set, and the screen has %q", coloured)
	}
	do(t, dir, "destroy", "--auto-approve")
}

// Ctrl-C and a signal end the view like q does.
func TestStatusScreenEnds(t *testing.T) {
	dir := t.TempDir()
	writeConfig(t, dir, "output \"x\" {\n  value = 1\n}\n")
	do(t, dir, "apply", "--auto-approve")
	for _, test := range []struct {
		name string
		end  func(t *testing.T, s *typist)
	}{
		{"Ctrl-C", func(t *testing.T, s *typist) { s.types(t, keyInterrupt) }},
		{"SIGTERM", func(t *testing.T, s *typist) {
			if err := s.cmd.Process.Signal(unix.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}},
		{"SIGINT", func(t *testing.T, s *typist) {
			if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := atTerminal(t, dir, "status", "--watch")
			s.draws(t, "no jobs")
			test.end(t, s)
			s.ends(t, 0)
			if !s.echoes(t) {
				t.Error("the terminal shows nothing that is typed any more")
			}
		})
	}
}

// do runs fray and expects it to succeed.
func do(t *testing.T, dir string, args ...string) {
	t.Helper()
	if out, errs, code := frayIn(t, dir, args...); code != 0 {
		t.Fatalf("fray %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
}

func screenConfig(name string) string {
	return "job \"" + name + "\" {\n  command = [\"sh\", \"-c\", \"echo hello from " + name + "; sleep 1000\"]\n}\n"
}

// draws is sees of a screen that is drawn by differences: it is given other sizes
// until it has been drawn whole with want on it.
func (s *typist) draws(t *testing.T, want string) {
	t.Helper()
	done := make(chan struct{})
	var resizing sync.WaitGroup
	resizing.Go(func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for width := uint16(100); ; width ^= 1 {
			s.resize(t, width, 30)
			select {
			case <-done:
				return
			case <-ticker.C:
			}
		}
	})
	defer resizing.Wait()
	defer close(done)
	s.sees(t, want)
}

func (s *typist) resize(t *testing.T, width, height uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(s.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		t.Error(err)
	}
}
