package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// needsFray skips a test of fray's processes with -short: what is left is of this
// process only, which is where the race detector sees anything.
func needsFray(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs fray built")
	}
}

func frayIn(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	needsFray(t)
	cmd := exec.CommandContext(t.Context(), fray, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "NO_COLOR=1")
	got, err := endingOf(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return got.stdout, got.stderr, got.code
}

func writeConfig(t *testing.T, dir, config string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "fray.hcl"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
}

const sleeper = "job \"one\" {\n  command = [\"sleep\", \"1000\"]\n}\n"
