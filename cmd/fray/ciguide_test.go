package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The workflows in the guide are the files in ci, and its commands work.
func TestCIGuide(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, block := range strings.Split(string(data), "```yaml\n# ")[1:] {
		path, text, _ := strings.Cut(block, "\n")
		text, _, _ = strings.Cut(text, "```")
		file, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(path)))
		if err != nil || string(file) != text {
			t.Errorf("%s is not as the guide has it: %v", path, err)
		}
		checked++
	}
	if checked != 5 {
		t.Errorf("checked %d files, want 5", checked)
	}
	dir := t.TempDir()
	defer endProcesses(dir)
	mustWrite(t, filepath.Join(dir, "key"), make([]byte, 32))
	mustWrite(t, filepath.Join(dir, "fray.hcl"), []byte("fray {\n  encryption {\n    kms_key = \"file://"+dir+"/key\"\n  }\n}\n\njob \"one\" {\n  command = [\"true\"]\n}\n"))
	out := runGuide(t, dir, commandsOf(t, readGuide(t, "ci.md", "Elsewhere")))
	if !strings.Contains(out, "Apply complete: 1 created") {
		t.Errorf("got\n%s", out)
	}
}
