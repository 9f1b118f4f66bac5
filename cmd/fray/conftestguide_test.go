package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// regoBlock is the policy in Rego of the guide to policies.
var regoBlock = regexp.MustCompile("(?ms)^```rego\n# (\\S+)\n(.*?)^```$")

// regoProgram evaluates a policy as conftest does, with an implementation of Rego that is
// installed in a second. Conftest and OPA take minutes to build, and are no part of this
// module: FRAY_TEST_CONFTEST names a program conftest that is there.
const regoProgram = `import json, regopy
rego = regopy.Interpreter()
rego.add_module("jobs.rego", open("policy/jobs.rego").read())
rego.set_input(json.load(open("plan.json")))
print(rego.query("data.main.deny"))
`

// The policy in Rego that the guide to policies shows denies what the guide says: what
// fray policy input prints is a document that it reads.
func TestConftestGuide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "policies.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regoBlock.FindStringSubmatch(string(guide))
	if block == nil {
		t.Fatal("the guide has no policy in Rego")
	}
	if err := os.MkdirAll(filepath.Join(dir, "policy"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{block[1]: block[2], "check.py": regoProgram} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const missing = "job.one has no label team"
	for config, denied := range map[string]bool{
		sleeper: true,
		strings.Replace(sleeper, "{\n", "{\n  labels = { team = \"rl\" }\n", 1): false,
	} {
		writeConfig(t, dir, config)
		stdout, stderr, code := frayIn(t, dir, "policy", "input")
		if code != 0 {
			t.Fatalf("fray policy input exits %d:\n%s", code, stderr)
		}
		if err := os.WriteFile(filepath.Join(dir, "plan.json"), []byte(stdout), 0o644); err != nil {
			t.Fatal(err)
		}
		if out := checkedByRego(t, dir); strings.Contains(out, missing) != denied {
			t.Errorf("the policy prints\n%s\ndenied must be %v", out, denied)
		}
	}
}

// checkedByRego is what a policy in Rego prints about plan.json.
func checkedByRego(t *testing.T, dir string) string {
	t.Helper()
	if conftest := os.Getenv("FRAY_TEST_CONFTEST"); conftest != "" {
		cmd := exec.CommandContext(t.Context(), conftest, "test", "plan.json")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if (err != nil) != strings.Contains(string(out), "FAIL") {
			t.Fatalf("conftest: %v\n%s", err, out)
		}
		return string(out)
	}
	if _, err := exec.LookPath("uv"); err != nil {
		t.Skip("there is no uv here, which installs an implementation of Rego")
	}
	have := exec.CommandContext(t.Context(), "uv", "run", "--no-project", "--with", "regopy==1.5.2", "python", "-c", "import regopy")
	if out, err := have.CombinedOutput(); err != nil {
		t.Skipf("an implementation of Rego cannot be fetched here: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "uv", "run", "--no-project", "--with", "regopy==1.5.2", "python", "check.py")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the policy fails: %v\n%s", err, out)
	}
	return string(out)
}
