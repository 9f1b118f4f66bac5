package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// policiesGuide writes the files of the guide to policies into a directory, and returns what it
// prints.
func policiesGuide(t *testing.T, dir string) (prints string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "policies.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range fence.FindAllStringSubmatch(string(data), -1) {
		first, rest, _ := strings.Cut(block[2], "\n")
		if block[1] == "console" {
			prints = rest
			continue
		}
		path := filepath.Join(dir, strings.TrimPrefix(first, "# "))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(rest), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "library"), os.DirFS("../../library")); err != nil {
		t.Fatal(err)
	}
	return prints
}

// The files of the guide to policies hold plans, and its cases print what it shows.
func TestPoliciesGuide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := policiesGuide(t, dir)
	stdout, stderr, code := frayIn(t, dir, "policy", "test")
	timeless := func(s string) string { return regexp.MustCompile(`\(\d+\.\ds\)`).ReplaceAllString(s, "(TIME)") }
	if code != 0 || timeless(stdout) != timeless(want) {
		t.Errorf("fray policy test exits %d and prints\n%s%s\nwant\n%s", code, stdout, stderr, want)
	}
	writeConfig(t, dir, sleeper)
	if stdout, stderr, code = frayIn(t, dir, "validate"); code != 0 || !strings.Contains(stdout, "4 policies") {
		t.Errorf("fray validate exits %d and prints\n%s%s", code, stdout, stderr)
	}
	stdout, stderr, code = frayIn(t, dir, "plan")
	if code != 0 || !strings.Contains(stdout, "Policies: 1 warned, 3 passed.") || !strings.Contains(stdout, "job.one has no label team.") {
		t.Errorf("fray plan exits %d and prints\n%s%s", code, stdout, stderr)
	}
	writeConfig(t, dir, strings.Replace(sleeper, "{\n", "{\n  retries {\n    failure = 2\n  }\n", 1))
	if stdout, stderr, code = frayIn(t, dir, "plan"); code != 1 || !strings.Contains(stderr, "the policy fray.retries denies this plan") {
		t.Errorf("fray plan exits %d and prints\n%s%s", code, stdout, stderr)
	}
}
