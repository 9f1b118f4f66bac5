package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fray-ml/fray/schema"
)

// bareMachine is a host without uv, whose python3 is a script.
func bareMachine(t *testing.T, python string, flags ...string) (*rig, schema.Job) {
	t.Helper()
	bin := t.TempDir()
	for _, tool := range []string{"sh", "mkdir", "cat", "chmod", "rm"} {
		if err := os.Symlink(filepath.Join("/bin", tool), filepath.Join(bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeProgram(filepath.Join(bin, "python3"), "#!/bin/sh\n"+python); err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	r.path = bin
	r.killAgent()
	r.startAgent(flags...)
	for _, name := range []string{"uv.lock", "pyproject.toml"} {
		if err := os.WriteFile(filepath.Join(r.work, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec := job("exit 0")
	spec.Environment.UV = &schema.UV{}
	return r, spec
}

// TestMachineGetsUV: its own python3 installs it, once.
func TestMachineGetsUV(t *testing.T) {
	t.Parallel()
	count := filepath.Join(t.TempDir(), "count")
	r, spec := bareMachine(t, `echo "$*" >>`+count+`
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/bin"
cat >"$2/bin/uv" <<'UV'
#!/bin/sh
mkdir -p "$UV_PROJECT_ENVIRONMENT/bin"
echo >"$UV_PROJECT_ENVIRONMENT/bin/python"
UV
chmod 755 "$2/bin/uv"
`, "--simulated=false")
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	spec.Environment.UV = &schema.UV{Extras: []string{"another"}}
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	calls, err := os.ReadFile(count)
	if err != nil || strings.Count(string(calls), "pip install") != 1 {
		t.Errorf("python3 was called as %q, %v; want one installation", calls, err)
	}
}

func TestMachineWithoutUV(t *testing.T) {
	t.Parallel()
	r, spec := bareMachine(t, "echo 'No matching distribution found for uv' >&2\nexit 1\n", "--simulated=false")
	end := r.awaitTask(r.assign(&spec), schema.TaskWorkerFailed)
	if want := "it cannot be installed: pip install uv: No matching distribution found for uv; use a boot image that has it"; !strings.Contains(end.Reason, want) {
		t.Errorf("got %q, want %q", end.Reason, want)
	}
}

// TestThisMachineIsLeftAlone: nothing is installed on a machine that is not the agent's.
func TestThisMachineIsLeftAlone(t *testing.T) {
	t.Parallel()
	r, spec := bareMachine(t, "exit 0\n")
	end := r.awaitTask(r.assign(&spec), schema.TaskWorkerFailed)
	if !strings.Contains(end.Reason, "it is not on PATH; install it, for example with pip install uv") {
		t.Errorf("got %q", end.Reason)
	}
}
