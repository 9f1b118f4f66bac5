package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

// A migration takes nothing along that belongs to the place: not the key in
// clear, not this machine's slices, not other workspaces; and clears nothing of
// that kind away where it goes.
func TestMigrationLeavesThePlaceAlone(t *testing.T) {
	needsFray(t)
	e := newEmulator(t)
	dir := t.TempDir()
	t.Cleanup(func() { endProcesses(dir) })
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), fray, args...)
		cmd.Dir = dir
		cmd.Env = append(append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "NO_COLOR=1"), e.environ()...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("fray %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	writeConfig(t, dir, sleeper)
	run("workspace", "new", "dev")
	run("apply", "--auto-approve", "--workspace=default")
	run("apply", "--auto-approve", "--workspace=dev")
	writeConfig(t, dir, inBucket("x", sleeper))
	run("state", "migrate", ".fray", "--workspace=default")
	found, err := e.service.ListObjectsWithOptionsPaginated(emulatedBucket, fakestorage.ListOptions{})
	if err != nil || len(found.Objects) == 0 {
		t.Fatalf("list objects: %d, %v", len(found.Objects), err)
	}
	for _, o := range found.Objects {
		key := strings.TrimPrefix(o.Name, "x/")
		folder, _, _ := strings.Cut(key, "/")
		switch folder {
		case "secret.key", "local", "workspace", "workspaces":
			t.Errorf("%s was copied into the bucket", key)
		}
	}

	before := filesBelow(t, filepath.Join(dir, ".fray", "workspaces"), filepath.Join(dir, ".fray", "local", "slices"))
	writeConfig(t, dir, sleeper)
	run("state", "migrate", "gs://"+emulatedBucket+"/x", "--workspace=default")
	for path := range before {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the way back removed %s", path)
		}
	}
	for _, workspace := range []string{"default", "dev"} {
		run("plan", "--detailed-exitcode", "--workspace="+workspace)
		run("destroy", "--auto-approve", "--workspace="+workspace)
	}
}

// filesBelow are the files below folders that stay as they are while jobs run.
func filesBelow(t *testing.T, folders ...string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, folder := range folders {
		if err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.Name() == ".tmp" {
				return filepath.SkipDir
			}
			if err == nil && !entry.IsDir() && (entry.Name() == "slice.json" || entry.Name() == "state.json" || entry.Name() == "task.json") {
				found[path] = true
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < 3 {
		t.Fatalf("only %d files found", len(found))
	}
	return found
}
