package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fray-ml/fray/schema"
)

// A task that needs what its host does not have fails with a cause that no retry
// fixes; one that fails otherwise has no such cause.
func TestMissingSoftware(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	venv := filepath.Join(t.TempDir(), "venv") // without the package fray, whatever the machine has
	if out, err := exec.CommandContext(t.Context(), "python3", "-m", "venv", "--without-pip", venv).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	python := filepath.Join(venv, "bin", "python")
	const packaged = schema.TerminationPackageMissing
	for _, test := range []struct {
		name    string
		command []string
		cause   schema.TerminationCause // "": none
		reason  string
	}{
		{"program", []string{"no-such-program"}, schema.TerminationProgramMissing, "not found on PATH"},
		{"a host of actors", []string{python, "-m", "fray.host", "counter:Counter"}, packaged, "pip install fray-ml"},
		{"a callable", []string{python, "-m", "fray._callable"}, packaged, "pip install fray-ml"},
		{"an import", []string{python, "-c", "import fray.rpc"}, packaged, "pip install fray-ml"},
		{"another import", []string{python, "-c", "import no_such_module"}, "", "exit status 1"},
		{"an import of another status", []string{python, "-c", "import sys\ntry:\n import fray\nfinally:\n sys.exit(4)"}, "", "exit status 4"},
		{"the same text of a shell", []string{"sh", "-c", `echo "ModuleNotFoundError: No module named 'fray'"; exit 1`}, "", "exit status 1"},
	} {
		spec := job("")
		spec.Command = nil
		for _, arg := range test.command {
			spec.Command = append(spec.Command, schema.Plain(arg))
		}
		task := r.awaitTask(r.assign(&spec), schema.TaskFailed)
		var cause schema.TerminationCause
		if task.Termination != nil {
			cause = task.Termination.Cause
		}
		if cause != test.cause || !strings.Contains(task.Reason, test.reason) {
			t.Errorf("%s: ended by %q, %q; want the cause %q and %q", test.name, cause, task.Reason, test.cause, test.reason)
		}
	} // A Python that has it, in the directory of the task, failed for another reason.
	writeFiles(t, r.work, "fray/__init__.py", "fray/_callable.py")
	spec := job("")
	spec.Command = []schema.Text{schema.Plain(python), schema.Plain("-c"), schema.Plain(`raise ModuleNotFoundError("No module named 'fray.none'")`)}
	if task := r.awaitTask(r.assign(&spec), schema.TaskFailed); task.Termination != nil {
		t.Errorf("a Python that has the package: ended by %+v", task.Termination)
	}
}

// The Python of a task may import the package of another project that is called fray.
func TestAnotherPackageFray(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	venv := filepath.Join(t.TempDir(), "venv")
	if out, err := exec.CommandContext(t.Context(), "python3", "-m", "venv", "--without-pip", venv).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	python := filepath.Join(venv, "bin", "python")
	fails := func(want string) {
		t.Helper()
		spec := job("")
		spec.Command = []schema.Text{schema.Plain(python), schema.Plain("-m"), schema.Plain("fray._callable")}
		task := r.awaitTask(r.assign(&spec), schema.TaskFailed)
		if task.Termination == nil || task.Termination.Cause != schema.TerminationPackageMissing || !strings.Contains(task.Reason, want) {
			t.Errorf("ended by %+v, %q; want %q", task.Termination, task.Reason, want)
		}
	}
	sites, err := filepath.Glob(filepath.Join(venv, "lib", "python*", "site-packages"))
	if err != nil || len(sites) != 1 {
		t.Fatalf("%v, %v", sites, err)
	}
	writeFiles(t, sites[0], "fray/__init__.py", "marin_fray-1.dist-info/METADATA", "marin_fray-1.dist-info/RECORD")
	for name, text := range map[string]string{"METADATA": "Metadata-Version: 2.1\nName: marin-fray\nVersion: 1\n", "RECORD": "fray/__init__.py,,\n"} {
		if err := os.WriteFile(filepath.Join(sites[0], "marin_fray-1.dist-info", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fails("imports the package fray of another distribution, marin-fray, from " + filepath.Join(sites[0], "fray") +
		"; remove that from the project's dependencies, or uninstall it there (pip uninstall marin-fray), and install fray-ml")
	if err := os.RemoveAll(filepath.Join(sites[0], "marin_fray-1.dist-info")); err != nil {
		t.Fatal(err)
	}
	fails("imports another package as fray, from " + filepath.Join(sites[0], "fray"))
	if err := os.Remove(filepath.Join(sites[0], "fray", "__init__.py")); err != nil {
		t.Fatal(err)
	}
	fails("does not have the package fray; install it there (pip install fray-ml)")
}

func writeFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
