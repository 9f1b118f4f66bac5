package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A wheel of a release brings the command and the Python package, to uv and to pip.
func TestWheel(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and installs a wheel")
	}
	t.Parallel()
	uv, err := exec.LookPath("uv")
	if err != nil {
		t.Skip("there is no uv: run scripts/tools uv first")
	}
	dir := t.TempDir()
	run := func(env []string, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	source, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	platform := strings.NewReplacer("-", "_", ".", "_").Replace(strings.TrimSpace(
		run(nil, "python3", "-c", "import sysconfig; print(sysconfig.get_platform())")))
	run([]string{"FRAY_WHEEL_PROGRAMS=" + fray, "FRAY_WHEEL_PLATFORM=" + platform}, uv, "build", "--quiet", "--wheel", "--out-dir", "dist", source)
	wheels, err := filepath.Glob(filepath.Join(dir, "dist", "fray_ml-*-py3-none-"+platform+".whl"))
	if err != nil || len(wheels) != 1 {
		t.Fatalf("built %v, %v, want one wheel for %s", wheels, err, platform)
	}
	version := run(nil, fray, "version")

	run(nil, uv, "venv", "--quiet", "--seed", "env")
	run([]string{"VIRTUAL_ENV=" + filepath.Join(dir, "env")}, uv, "pip", "install", "--quiet", wheels[0])
	if got := run(nil, "env/bin/fray", "version"); got != version {
		t.Errorf("the installed fray is %q, want %q", got, version)
	}
	script := "from fray.cluster import current_cluster; from fray.rpc import ActorServer; print('imported')"
	if got := run(nil, "env/bin/python", "-c", script); got != "imported\n" {
		t.Errorf("the installed package: %q", got)
	}
	if err := os.Mkdir(filepath.Join(dir, "stack"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "stack", "fray.hcl"), []byte("job \"a\" {\n  command = [\"true\"]\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := run(nil, "env/bin/fray", "plan", "stack"); !strings.Contains(got, "1 to create") {
		t.Errorf("the plan of the installed fray: %s", got)
	}

	// The README's lines: in the directory of a wheel, with an environment that has pip.
	run([]string{"VIRTUAL_ENV=" + filepath.Join(dir, "env")}, uv, "pip", "uninstall", "--quiet", "fray-ml")
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```console install\n(.*?)^```$").FindStringSubmatch(string(readme))
	if block == nil {
		t.Fatal("the README has no commands that install")
	}
	commands := regexp.MustCompile(`(?m)^\$ `).ReplaceAllString(block[1], "")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+commands)
	cmd.Dir = filepath.Join(dir, "dist")
	cmd.Env = append(os.Environ(), "UV_TOOL_DIR="+filepath.Join(dir, "tools"), "UV_TOOL_BIN_DIR="+filepath.Join(dir, "bin"),
		"PATH="+filepath.Join(dir, "env", "bin")+string(filepath.ListSeparator)+filepath.Dir(uv)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, commands, out)
	}
	for _, by := range []string{"bin/fray", "env/bin/fray"} { // of uv and of pip
		if got := run(nil, by, "version"); got != version {
			t.Errorf("%s is %q, want %q", by, got, version)
		}
	}
}
