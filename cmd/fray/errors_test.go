package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestErrorExamples provokes every message of docs/errors.md that has an example,
// with the flags behind its language: `fray plan`, or `fray validate` where it alone reports
// that, says what the heading says.
func TestErrorExamples(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, entry := range strings.Split(string(page), "\n### ")[1:] {
		heading, text, _ := strings.Cut(entry, "\n")
		for _, example := range regexp.MustCompile("(?s)\n```hcl([^\n]*)\n(.*?)\n```").FindAllStringSubmatch(text, -1) {
			count++
			t.Run(heading, func(t *testing.T) {
				t.Parallel()
				provoke(t, heading, text, strings.Fields(example[1]), example[2])
			})
		}
	}
	if count < 80 {
		t.Errorf("the page has only %d examples", count)
	}
}

// provoke plans the files of an example.
func provoke(t *testing.T, heading, text string, flags []string, files string) {
	needsFray(t)
	dir := t.TempDir()
	name := "main.hcl"
	for line := range strings.Lines(files + "\n") {
		if header := regexp.MustCompile(`^# (\S+\.(?:hcl|frayvars|frayvars\.json))\n$`).FindStringSubmatch(line); header != nil {
			name = header[1]
			continue
		}
		appendTo(t, filepath.Join(dir, name), line)
	}
	verb := "plan"
	if strings.Contains(text, "Only `fray validate` reports this") {
		verb = "validate"
	}
	cmd := exec.CommandContext(t.Context(), fray, append([]string{verb}, flags...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "NO_COLOR=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	runErr := cmd.Run()
	start, open := strings.CutSuffix(heading, "…")
	for line := range strings.Lines(stderr.String()) {
		severity, summary, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if severity != "Error" && severity != "Warning" || !strings.HasPrefix(summary, start) || !open && summary != start {
			continue
		}
		if (severity == "Error") != (runErr != nil) {
			t.Errorf("the message is there, but the plan ended with %v:\n%s", runErr, stderr.String())
		}
		return
	}
	t.Errorf("fray %s %s does not say %q (%v):\n%s", verb, strings.Join(flags, " "), heading, runErr, stderr.String())
}

func appendTo(t *testing.T, path, line string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(line); err != nil {
		t.Fatal(err)
	}
}
