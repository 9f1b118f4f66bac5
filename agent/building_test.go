package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fray-ml/fray/schema"
)

// slowUV stands in for a uv that takes its time.
func slowUV(t *testing.T, r *rig) {
	t.Helper()
	bin := t.TempDir()
	script := "#!/bin/sh\necho $$ > " + filepath.Join(r.work, "uv-pid") + "\nsleep 1000\n"
	if err := writeProgram(filepath.Join(bin, "uv"), script); err != nil {
		t.Fatal(err)
	}
	r.path = bin + ":" + os.Getenv("PATH")
	r.killAgent()
	r.startAgent()
	for _, name := range []string{"uv.lock", "pyproject.toml"} {
		if err := os.WriteFile(filepath.Join(r.work, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// builds assigns a task whose environment takes for ever. It returns the
// generation, and the process that builds.
func builds(t *testing.T, r *rig) (gen int64, uv int) {
	t.Helper()
	slowUV(t, r)
	spec := job("echo x >> starts")
	spec.Environment.UV = &schema.UV{}
	gen = r.assign(&spec)
	r.awaitTask(gen, schema.TaskBuilding)
	return gen, r.pidIn("uv-pid")
}

func TestBuildingIsInterrupted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, uv := builds(t, r)
	quick := job("exit 0")
	next := r.assign(&quick)
	r.awaitTask(next, schema.TaskSucceeded)
	r.wantGone(uv)
	if r.starts() != 0 {
		t.Error("the interrupted task was started")
	}
}

func TestBuildingStartsAgainAfterTheAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gen, uv := builds(t, r)
	r.killAgent()
	if err := os.Remove(filepath.Join(r.work, "uv-pid")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "uv to die with its agent", func() bool { return !alive(uv) }, nothing)
	r.startAgent()
	if again := r.pidIn("uv-pid"); again == uv || !alive(again) {
		t.Errorf("uv was %d and is %d", uv, again)
	}
	r.awaitTask(gen, schema.TaskBuilding)
	r.awaitTask(r.assignNothing(gen), schema.TaskKilled)
}

// assignNothing ends the task of a generation and returns that generation.
func (r *rig) assignNothing(generation int64) int64 {
	r.assign(nil)
	return generation
}

func TestMissingUVIsTheHostsFault(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	slowUV(t, r)
	r.path = "/nowhere"
	r.killAgent()
	r.startAgent()
	spec := job("echo x >> starts")
	spec.Environment.UV = &schema.UV{}
	task := r.awaitTask(r.assign(&spec), schema.TaskWorkerFailed)
	if !strings.Contains(task.Reason, "pip install uv") {
		t.Errorf("reason is %q", task.Reason)
	}
}

func TestUVEnvironment(t *testing.T) {
	uv, err := exec.LookPath("uv")
	if err != nil {
		t.Skip("uv is not installed")
	}
	t.Parallel()
	r := newRig(t)
	files := map[string]string{
		"pyproject.toml":       "[project]\nname = \"tiny\"\nversion = \"0.1.0\"\nrequires-python = \">=3.8\"\n",
		"src/tiny/__init__.py": "",
		"src/tiny/run.py":      "import sys, os\nprint(sys.prefix == os.environ['VIRTUAL_ENV'], sys.prefix != sys.base_prefix)\n",
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(r.work, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.work, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lock := exec.Command(uv, "lock", "--offline")
	lock.Dir = r.work
	if out, err := lock.CombinedOutput(); err != nil {
		t.Fatalf("uv lock: %v\n%s", err, out)
	}
	spec := job("")
	spec.Command = []schema.Text{schema.Plain("python"), schema.Plain("-m"), schema.Plain("tiny.run")}
	spec.Environment.UV = &schema.UV{}
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	if got := r.output(); got != "True True\n" {
		t.Errorf("output is %q", got)
	}
	built, err := filepath.Glob(filepath.Join(r.dir, "cache", "uv", "*.built"))
	if err != nil || len(built) != 1 {
		t.Fatalf("built environments are %v, %v", built, err)
	}
	before, err := os.Stat(built[0])
	if err != nil {
		t.Fatal(err)
	}
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	if after, err := os.Stat(built[0]); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the environment was built again: %v", err)
	}
	spec.Environment.UV = &schema.UV{Extras: []string{"nope"}}
	task := r.awaitTask(r.assign(&spec), schema.TaskFailed)
	if !strings.Contains(task.Reason, "nope") || len(task.Tail) == 0 || task.Started {
		t.Errorf("task ended as %+v", task)
	}
}
