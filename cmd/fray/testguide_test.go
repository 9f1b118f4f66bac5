package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The guide to tests shows a configuration, its tests and what they print: they
// print that, but for the times.
func TestTestingGuide(t *testing.T) {
	needsFray(t)
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Cleanup(func() { endProcesses(dir) })
	files := map[string]string{"train.sh": "echo training \"$@\" on $CORPUS\n"}
	want := ""
	for _, block := range fence.FindAllStringSubmatch(string(data), -1) {
		first, rest, _ := strings.Cut(block[2], "\n")
		switch block[1] {
		case "hcl":
			files[strings.TrimPrefix(first, "# ")] = rest
		case "console":
			want = rest
		}
	}
	if len(files) != 3 || want == "" {
		t.Fatalf("the guide has %d files and prints %q", len(files), want)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), fray, "test")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "NO_COLOR=1")
	var told strings.Builder
	cmd.Stderr = &told
	got, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, got, told.String())
	}
	timeless := func(s string) string { return regexp.MustCompile(`\(\d+\.\ds\)`).ReplaceAllString(s, "(TIME)") }
	if timeless(string(got)) != timeless(want) {
		t.Errorf("fray test printed\n%s\nwant\n%s", got, want)
	}
	if told.String() != "" {
		t.Errorf("it told %s", told.String())
	}
}
