package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// conftestVariable names the program conftest, or asks with "install" for its installation.
const conftestVariable = "FRAY_TEST_CONFTEST"

// conftestVersion is the version that is installed.
const conftestVersion = "v0.71.1"

// regoBlock is the policy in Rego of the guide to policies.
var regoBlock = regexp.MustCompile("(?ms)^```rego\n# (\\S+)\n(.*?)^```$")

// The policy in Rego that the guide to policies shows is one for conftest, and denies what
// the guide says: what fray policy input prints is a document that it reads.
func TestConftestGuide(t *testing.T) {
	t.Parallel()
	conftest := conftestProgram(t)
	dir := t.TempDir()
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "policies.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regoBlock.FindStringSubmatch(string(guide))
	if block == nil {
		t.Fatal("the guide has no policy in Rego")
	}
	rego := filepath.Join(dir, block[1])
	if err := os.MkdirAll(filepath.Dir(rego), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rego, []byte(block[2]), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ config, want string }{
		{sleeper, "job.one has no label team"},
		{strings.Replace(sleeper, "{\n", "{\n  labels = { team = \"rl\" }\n", 1), "2 passed, 0 warnings, 0 failures"},
	} {
		writeConfig(t, dir, test.config)
		stdout, stderr, code := frayIn(t, dir, "policy", "input")
		if code != 0 {
			t.Fatalf("fray policy input exits %d:\n%s", code, stderr)
		}
		if err := os.WriteFile(filepath.Join(dir, "plan.json"), []byte(stdout), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), conftest, "test", "plan.json")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), test.want) || (err == nil) != strings.Contains(test.want, "0 failures") {
			t.Errorf("conftest prints (%v)\n%s\nwant %s", err, out, test.want)
		}
	}
}

// conftestProgram is the program conftest. It is no part of this module, whose size it
// would multiply.
func conftestProgram(t *testing.T) string {
	t.Helper()
	switch named := os.Getenv(conftestVariable); {
	case named == "install":
		bin := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "go", "install", "github.com/open-policy-agent/conftest@"+conftestVersion)
		cmd.Env = append(os.Environ(), "GOBIN="+bin, "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("conftest cannot be installed here: %v\n%s", err, out)
		}
		return filepath.Join(bin, "conftest")
	case named != "":
		return named
	}
	found, err := exec.LookPath("conftest")
	if err != nil {
		t.Skipf("there is no conftest here: %s=install installs it, which takes minutes", conftestVariable)
	}
	return found
}
