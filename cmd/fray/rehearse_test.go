package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

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
