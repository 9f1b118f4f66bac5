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
		{"a host of actors", []string{python, "-m", "fray.host", "counter:Counter"}, packaged, "pip install fray"},
		{"a callable", []string{python, "-m", "fray._callable"}, packaged, "pip install fray"},
		{"an import", []string{python, "-c", "import fray.rpc"}, packaged, "pip install fray"},
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
	if err := os.MkdirAll(filepath.Join(r.work, "fray"), 0o700); err != nil {
		t.Fatal(err)
	}
	spec := job("")
	spec.Command = []schema.Text{schema.Plain(python), schema.Plain("-c"), schema.Plain(`raise ModuleNotFoundError("No module named 'fray.none'")`)}
	if task := r.awaitTask(r.assign(&spec), schema.TaskFailed); task.Termination != nil {
		t.Errorf("a Python that has the package: ended by %+v", task.Termination)
	}
}
