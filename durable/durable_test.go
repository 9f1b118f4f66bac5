package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/fray-ml/fray/durable"
)

func TestWriteFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, content := range []string{"first", "second"} {
		if err := durable.WriteFile(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Errorf("read %q, %v; want %q", got, err, content)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
			t.Errorf("mode %v, %v; want 0640", info.Mode(), err)
		}
	}
	alone(t, dir, "a")
}

// TestDiscard: what was not committed leaves the file as it was, and nothing beside it.
func TestDiscard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := durable.WriteFile(path, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := durable.Create(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("half"); err != nil {
		t.Fatal(err)
	}
	f.Discard()
	if got, err := os.ReadFile(path); err != nil || string(got) != "first" {
		t.Errorf("read %q, %v; want the content of before", got, err)
	}
	alone(t, dir, "a")
	if err := durable.WriteFile(filepath.Join(dir, "none", "a"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a directory that is not there: %v, want fs.ErrNotExist", err)
	}
}

// TestWriteNew: a file that is there stays as it is.
func TestWriteNew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := durable.WriteNew(path, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteNew(path, []byte("second"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want fs.ErrExist", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "first" {
		t.Errorf("read %q, %v; want the first content", got, err)
	}
	alone(t, dir, "a")
}

// alone checks that a directory has one file.
func alone(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("the directory has %v, %v; want %s alone", entries, err, name)
	}
}
