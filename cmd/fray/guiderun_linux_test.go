package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
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

// TestGCPGuide starts the emulated cloud as the guide does, on a free port, and plans, applies
// and watches its first file there. A program of its own stands for that of the image, which the
// emulated machines do not use; the login is that of Google's own program.
func TestGCPGuide(t *testing.T) {
	t.Parallel()
	needsFray(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endProcesses(dir) })
	writeConfig(t, dir, snippets(t, "gcp.md", 1)[0])
	bin := filepath.Join(dir, "bin")
	if err := errors.Join(os.Mkdir(bin, 0o755), os.WriteFile(filepath.Join(bin, "python"), []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	intro, _, _ := strings.Cut(readGuide(t, "gcp.md", ""), "\n## ")
	lines := strings.Split(commandsOf(t, regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(intro, "")), "\n")
	if len(lines) < 6 || !strings.HasPrefix(lines[0], "gcloud ") || !strings.HasPrefix(lines[3], "fray watch") || !strings.HasPrefix(lines[4], "fray emulate gcp ") {
		t.Fatalf("the guide has other commands:\n%s", strings.Join(lines, "\n"))
	}
	emulate, _, _ := strings.Cut(lines[4], "#")
	script := "PATH=" + bin + ":$PATH\n" +
		emulate + "--listen 127.0.0.1:0 --speed 20 >emulator.out 2>emulator.log &\ncloud=$!\ntrap 'kill $cloud; wait $cloud' EXIT\n" +
		"until grep -q ^export emulator.out; do sleep 0.1; done\n" +
		strings.Replace(lines[5], "http://127.0.0.1:8470", "$(sed 's/.*=//' emulator.out)", 1) + "\n" +
		lines[1] + "\n" + lines[2] + "\n" +
		"fray watch >watch.log 2>&1 & # keeps it so\nwatch=$!\nuntil grep -q http:// watch.log; do sleep 0.1; done\nfray status\nkill -INT $watch\nwait $watch\n" +
		"fray destroy\necho all has run"
	master, slave := terminaltest.Open(t)
	cmd := guideShell(t, dir, script)
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
	if shown := s.sees(t, "all has run"); !strings.Contains(shown, "Destroy complete: 1 destroyed") {
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
