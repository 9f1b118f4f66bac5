package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/agent/tree/treetest"
	"github.com/fray-ml/fray/schema"
)

// A bundle that a power cut damaged is not run: what is damaged is made again, and
// what tasks wrote there stays.
func TestDamagedBundleIsRepairedBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	project := t.TempDir()
	treetest.Plant(t, project, map[string]string{"main.sh": "echo main $(cat lib/data) $(cat kept)", "lib/data": strings.Repeat("d", 100), "kept": "shipped"})
	var packed bytes.Buffer
	sum, _, err := bundle.Pack(project, &packed)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.store.Upload(t.Context(), "bundles/"+sum, &packed); err != nil {
		t.Fatal(err)
	}
	spec := job("echo own > kept; echo result > out; sh main.sh")
	spec.Environment.Bundle = sum
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	dir := filepath.Join(r.dir, hostdir.BundlesDir, sum)
	later := job("cat out; sh main.sh")
	later.Environment.Bundle = sum
	for _, c := range []struct {
		name string
		harm func()
	}{
		{"truncated", func() { treetest.CutPower(t, filepath.Join(dir, "lib", "data"), nil) }},
		{"zeros", func() { treetest.CutPower(t, filepath.Join(dir, "lib", "data"), make([]byte, 100)) }},
		{"program", func() { treetest.CutPower(t, filepath.Join(dir, "main.sh"), nil) }},
		{"without a record", func() {
			treetest.CutPower(t, filepath.Join(dir, "main.sh"), nil)
			if err := os.Remove(dir + ".tree"); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		name := c.name
		c.harm()
		r.awaitTask(r.assign(&later), schema.TaskSucceeded)
		kept := "own"
		if name == "without a record" {
			kept = "shipped"
		}
		want := "result\nmain " + strings.Repeat("d", 100) + " " + kept + "\n"
		if got := r.output(); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// A uv that a power cut damaged is installed again.
func TestDamagedUVIsInstalledAgain(t *testing.T) {
	t.Parallel()
	count := filepath.Join(t.TempDir(), "count")
	cache := t.TempDir()
	r, spec := bareMachine(t, `echo "$*" >>`+count+`
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/bin"
cat >"$2/bin/uv" <<'UV'
#!/bin/sh
mkdir -p "$UV_PROJECT_ENVIRONMENT/bin"
echo built >>`+count+`
echo python >"$UV_PROJECT_ENVIRONMENT/bin/python"
UV
chmod 755 "$2/bin/uv"
`, "--simulated=false", "--cache-dir", cache)
	wantCount := func(what string, want int) {
		t.Helper()
		calls, err := os.ReadFile(count)
		if err != nil || strings.Count(string(calls), what) != want {
			t.Errorf("the calls are %q, %v; want %q %d times", calls, err, what, want)
		}
	}
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	program := filepath.Join(cache, "uv-program", "bin", "uv")
	script, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	treetest.CutPower(t, program, []byte(strings.Replace(string(script), "mkdir", "false", 1)))
	spec.Environment.UV = &schema.UV{Extras: []string{"another"}}
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	wantCount("pip install", 2)
	wantCount("built", 2)

	// The same of an environment, on a machine that was booted again.
	venvs, err := filepath.Glob(filepath.Join(cache, "uv", "*.tree"))
	if err != nil || len(venvs) != 2 {
		t.Fatalf("environments %v, %v", venvs, err)
	}
	for _, path := range venvs {
		venv := strings.TrimSuffix(path, ".tree")
		var of map[string]any
		if err := record.ReadJSON(path, &of); err != nil {
			t.Fatal(err)
		}
		of["boot"] = "another"
		if err := record.WriteJSON(path, of); err != nil {
			t.Fatal(err)
		}
		treetest.CutPower(t, filepath.Join(venv, "bin", "python"), make([]byte, 7))
	}
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	wantCount("built", 3)
}
