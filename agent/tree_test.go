package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/schema"
)

// plant makes a tree of files.
func plant(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// cutPower leaves a file as a power cut may: of the time that it was written, with
// other content.
func cutPower(t *testing.T, path string, content []byte) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, info.Mode()); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

// What gets a trusted name is on the disk before: every file, every directory after
// what is in it, the name, and the directory that holds the name, in this order.
func TestTreeIsSyncedBeforeItIsNamed(t *testing.T) {
	root := t.TempDir()
	temp, dir := filepath.Join(root, "temp"), filepath.Join(root, "tree")
	plant(t, temp, map[string]string{"a": "1", "d/b": "2", "d/e/c": "3"})
	var did []string
	ops := treeOps{
		sync: func(path string) error {
			did = append(did, "sync "+strings.TrimPrefix(path, root))
			return nil
		},
		rename: func(from, to string) error {
			if _, err := readTree(dir); err != nil {
				t.Errorf("it is named before its record is written: %v", err)
			}
			did = append(did, "rename "+strings.TrimPrefix(from, root)+" "+strings.TrimPrefix(to, root))
			return os.Rename(from, to)
		},
	}
	if err := ops.place(temp, dir); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"sync /temp/a", "sync /temp/d/b", "sync /temp/d/e/c", "sync /temp/d/e", "sync /temp/d", "sync /temp",
		"rename /temp /tree", "sync ",
	}
	if !slices.Equal(did, want) {
		t.Errorf("got\n%q\nwant\n%q", did, want)
	}
	if !treeIntact(dir) || !treeWhole(dir) {
		t.Error("a tree is not whole as it was made")
	}
}

func TestTreeAfterAPowerCut(t *testing.T) {
	for name, c := range map[string]struct {
		harm  func(t *testing.T, file string)
		whole bool
	}{
		"truncated": {func(t *testing.T, file string) { cutPower(t, file, nil) }, false},
		"zeros":     {func(t *testing.T, file string) { cutPower(t, file, make([]byte, 5)) }, false},
		"lost": {func(t *testing.T, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}, false},
		"changed by a program": {func(t *testing.T, file string) {
			cutPower(t, file, []byte("other"))
			later := time.Now().Add(time.Second)
			if err := os.Chtimes(file, later, later); err != nil {
				t.Fatal(err)
			}
		}, true},
		"more beside it": {func(t *testing.T, file string) { plant(t, filepath.Dir(file), map[string]string{"more": "x"}) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "tree")
			plant(t, dir, map[string]string{"d/file": "whole", "d/other": "x"})
			if err := realTreeOps().seal(dir, recordOf(dir)); err != nil {
				t.Fatal(err)
			}
			c.harm(t, filepath.Join(dir, "d/file"))
			if bootID() != "" && !treeWhole(dir) {
				t.Error("a tree that was synced is read again although the machine was not booted")
			}
			record, err := readTree(dir)
			if err != nil {
				t.Fatal(err)
			}
			record.Boot = "another"
			if err := writeJSON(recordOf(dir), record); err != nil {
				t.Fatal(err)
			}
			if treeIntact(dir) != c.whole || treeWhole(dir) != c.whole {
				t.Errorf("whole: %v, %v; want %v", treeIntact(dir), treeWhole(dir), c.whole)
			}
		})
	}
}

// A bundle that a power cut damaged is not run: what is damaged is made again, and
// what tasks wrote there stays.
func TestDamagedBundleIsMendedBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	project := t.TempDir()
	plant(t, project, map[string]string{"main.sh": "echo main $(cat lib/data) $(cat kept)", "lib/data": strings.Repeat("d", 100), "kept": "shipped"})
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
	dir := filepath.Join(r.dir, bundlesDir, sum)
	later := job("cat out; sh main.sh")
	later.Environment.Bundle = sum
	for _, c := range []struct {
		name string
		harm func()
	}{
		{"truncated", func() { cutPower(t, filepath.Join(dir, "lib", "data"), nil) }},
		{"zeros", func() { cutPower(t, filepath.Join(dir, "lib", "data"), make([]byte, 100)) }},
		{"program", func() { cutPower(t, filepath.Join(dir, "main.sh"), nil) }},
		{"without a record", func() {
			cutPower(t, filepath.Join(dir, "main.sh"), nil)
			if err := os.Remove(recordOf(dir)); err != nil {
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
	cutPower(t, program, []byte(strings.Replace(string(script), "mkdir", "false", 1)))
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
		record, err := readTree(venv)
		if err != nil {
			t.Fatal(err)
		}
		record.Boot = "another"
		if err := writeJSON(path, record); err != nil {
			t.Fatal(err)
		}
		cutPower(t, filepath.Join(venv, "bin", "python"), make([]byte, 7))
	}
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	wantCount("built", 3)
}
