package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fray-ml/fray/rehearse"
	"github.com/fray-ml/fray/terminal"
)

// Without a terminal a line states from time to time how far a rehearsal is.
func TestRehearsalProgressWithoutATerminal(t *testing.T) {
	var stderr bytes.Buffer
	p := rehearsalProgress{app: terminal.New(nil, nil, &stderr)}
	at := rehearse.Progress{Passed: 110 * time.Minute, Of: 168 * time.Hour, Running: 7, Jobs: 10}
	p.report(at)
	p.report(at) // too soon after the one before
	p.shown = time.Time{}
	at.Settling, at.Ended = true, 2
	p.report(at)
	want := "hour 1 of 168: 7 of 10 jobs run\n168 hours rehearsed, now checking what remains without faults: 7 of 10 jobs run, 2 are done\n"
	if got := stderr.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestRehearsalJSONDoc(t *testing.T) {
	needsFray(t)
	doc := readFormatDoc(t, "rehearsal-json.md")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "train.hcl"), []byte(doc.block(t, "hcl")), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), fray, "rehearse", "--json", "--scenario=stormy", "--for=12h")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("got %v, and on standard error %q", err, stderr.String())
	}
	doc.check(t, out)
}
