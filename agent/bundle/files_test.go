package bundle_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/state/store/storetest"
)

// A directory has the files that its bundle in the store has, and after changes it
// differs in what changed: contents, modes, links, names.
func TestDifferences(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"same", "content", "mode", "gone", "sub/same"} {
		write(name, "of "+name, 0o644)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("same", link); err != nil {
		t.Fatal(err)
	}
	s := storetest.NewMemory()
	m, err := bundle.Measure(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := (bundle.Shipper{Store: s}).Ship(t.Context(), bundle.Project{Dir: dir, Bundle: m}); err != nil {
		t.Fatal(err)
	}
	before, err := bundle.StoredFiles(t.Context(), s, m.Sum)
	if err != nil {
		t.Fatal(err)
	}
	now, err := bundle.FilesOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := bundle.Differences(before, now); len(before) != 6 || len(diff) != 0 {
		t.Errorf("of %d files these differ at once: %v", len(before), diff)
	}
	write("content", "other", 0o644)
	write("mode", "of mode", 0o755)
	write("new", "", 0o644)
	for _, name := range []string{"gone", "link"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("content", link); err != nil {
		t.Fatal(err)
	}
	if now, err = bundle.FilesOf(dir); err != nil {
		t.Fatal(err)
	}
	want := []bundle.Difference{
		{Path: "content", Before: true, After: true}, {Path: "gone", Before: true}, {Path: "link", Before: true, After: true},
		{Path: "mode", Before: true, After: true}, {Path: "new", After: true},
	}
	if diff := cmp.Diff(want, bundle.Differences(before, now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := bundle.StoredFiles(t.Context(), s, m.Sum[1:]+"0"); err == nil {
		t.Error("a bundle that the store does not have has files")
	}
	if _, err := bundle.FilesOf(filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that is not there has files")
	}
}
