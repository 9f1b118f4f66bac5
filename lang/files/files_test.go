package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// TestGlobLimit: a limited number of files is visited.
func TestGlobLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c", "d/e", "d/f"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		most int
		ok   bool
	}{{100, true}, {4, false}} {
		_, err := glob(dir, "**", tt.most)
		if (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "more than 4 files") {
			t.Errorf("with at most %d: %v", tt.most, err)
		}
	}
}

func TestCountingFS(t *testing.T) {
	t.Parallel()
	c := &countingFS{fsys: fstest.MapFS{"a": {}, "b": {}}, left: 4}
	if _, err := fs.ReadDir(c, "."); err != nil || c.left != 2 {
		t.Errorf("got %v, %d left, want 2", err, c.left)
	}
	if _, err := fs.Stat(c, "a"); err != nil || c.left != 1 {
		t.Errorf("got %v, %d left, want 1", err, c.left)
	}
	if _, err := fs.ReadDir(c, "."); err == nil {
		t.Error("a directory of two was read with one left")
	}
	if _, err := c.Open("a"); err == nil {
		t.Error("a file was opened with none left")
	}
}
