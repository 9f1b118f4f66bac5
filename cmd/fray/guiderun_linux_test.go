package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fray-ml/fray/terminal/terminaltest"
)

// TestQuickstartGuide runs the guide's commands in order, in one shell at a terminal, in
// a copy of the examples, and approves what they ask.
func TestQuickstartGuide(t *testing.T) {
	needsFray(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endProcesses(dir) })
	examples := filepath.Join("..", "..", "examples")
	for _, part := range []string{"quickstart.hcl", "quickstart", "data"} {
		from, to := filepath.Join(examples, part), filepath.Join(dir, "examples", part)
		if info, err := os.Stat(from); err != nil {
			t.Fatal(err)
		} else if info.IsDir() {
			if err := os.CopyFS(to, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		copyFile(t, from, to)
	}
	master, slave := terminaltest.Open(t)
	cmd := guideShell(t, dir, commandsOf(t, readGuide(t, "quickstart.md", ""))+"echo all has run")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &typist{File: master, slave: slave, cmd: cmd}
	const question = `Only "yes" is accepted: `
	for range 2 { // apply, destroy
		s.sees(t, question)
		s.types(t, "yes\n")
	}
	if shown := s.sees(t, "all has run"); !strings.Contains(shown, "Destroy complete: 5 destroyed") {
		t.Errorf("after the approval of the destroy it showed\n%s", shown)
	}
	s.ends(t, 0)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
