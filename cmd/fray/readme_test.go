package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// fence matches a fenced block of Markdown: its language and its text.
var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// The README's configuration is planned, and the commands of its first ten
// minutes are run in order, in one shell.
func TestReadme(t *testing.T) {
	needsFray(t)
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Cleanup(func() { endProcesses(dir) })
	script := "set -eu\nWATCH=\ntrap '[ -z \"$WATCH\" ] || kill $WATCH' EXIT\n"
	commands := 0
	for _, block := range fence.FindAllStringSubmatch(string(readme), -1) {
		switch block[1] {
		case "hcl":
			writeConfig(t, dir, block[2])
		case "console":
			for line := range strings.Lines(block[2]) {
				if command, ok := strings.CutPrefix(line, "$ "); ok {
					script += command
					if strings.HasSuffix(command, "&\n") {
						script += "WATCH=$!\n"
					}
					commands++
				}
			}
		}
	}
	if commands < 8 {
		t.Fatalf("found only %d commands in the README", commands)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"PATH="+filepath.Dir(fray)+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "NO_COLOR=1")
	out, err := os.Create(filepath.Join(t.TempDir(), "out")) // a file: a pipe would wait for detached agents
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	runErr := cmd.Run()
	printed, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	if runErr != nil {
		t.Fatalf("%v\nthe script:\n%s\nit printed:\n%s", runErr, script, printed)
	}
	for _, want := range []string{"Plan: 3 to create", "Apply complete: 3 created", "job.trainer  running", "host 3 step", "attempt 1", "Destroy complete: 3 destroyed"} {
		if !strings.Contains(string(printed), want) {
			t.Errorf("the README's commands did not print %q:\n%s", want, printed)
		}
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		left := processes(dir)
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind:\n%s", strings.Join(processLines(left), "\n"))
		}
	}
}
