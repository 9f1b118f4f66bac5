package modules

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func publication(t *testing.T, w *world, version string, entries ...entry) Publication {
	t.Helper()
	path := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(path, zstandard(t, tarball(t, entries...)), 0o644); err != nil {
		t.Fatal(err)
	}
	src, err := ParseSource(w.registry + "/pool")
	if err != nil {
		t.Fatal(err)
	}
	return Publication{Source: src, Version: version, Archive: path}
}

func TestPublish(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry += "/new/team" // is made
	one, other := entry{name: "main.hcl", text: "# 1\n"}, entry{name: "main.hcl", text: "# 2\n"}
	tests := []struct {
		name    string
		version string
		entry   entry
		there   bool
		err     string
	}{
		{"first", "1.0.0", one, false, ""},
		{"again", "1.0.0", one, true, ""},
		{"other files", "1.0.0", other, true, "a version never changes: publish the next one"},
		{"next", "1.0.1", other, false, ""},
		{"no version", "1.1", one, false, "write MAJOR.MINOR.PATCH"},
		{"build metadata", "1.1.0+x", one, false, "write MAJOR.MINOR.PATCH"},
		{"what cannot be unpacked", "2.0.0", entry{name: "../x", text: "x"}, false, "leads out of the archive"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			there, err := Registries{}.Publish(t.Context(), publication(t, w, test.version, test.entry))
			if test.err != "" {
				wantError(t, err, test.err)
				return
			}
			if err != nil || there != test.there {
				t.Errorf("there before: %v, %v, want %v", there, err, test.there)
			}
		})
	}
	files, err := os.ReadDir(strings.TrimPrefix(w.registry, "file://"))
	if err != nil || len(files) != 2 {
		t.Errorf("the registry has %v (%v), want two archives", files, err)
	}
	w.calls("pool")
	w.wantGet(Getter{}, "pool 1.0.1 fetched", "locked")
}

// A .tar.gz that others made is the version, too.
func TestPublishBesideAnotherEnding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := gzipped(t, tarball(t, entry{name: "main.hcl", text: "# 1\n"}))
	if err := os.WriteFile(filepath.Join(strings.TrimPrefix(w.registry, "file://"), "pool-1.0.0.tar.gz"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	there, err := Registries{}.Publish(t.Context(), publication(t, w, "1.0.0", entry{name: "main.hcl", text: "# 1\n"}))
	if err != nil || !there {
		t.Errorf("there before: %v, %v, want the same files found", there, err)
	}
	_, err = Registries{}.Publish(t.Context(), publication(t, w, "1.0.0", entry{name: "main.hcl", text: "# 2\n"}))
	wantError(t, err, "holds other files already")
}

// Of several who publish different files under one version, one wins.
func TestPublishAtTheSameTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var won atomic.Int32
	var all sync.WaitGroup
	for i := range 6 {
		p := publication(t, w, "1.0.0", entry{name: "main.hcl", text: strings.Repeat("#", i+1) + "\n"})
		all.Go(func() {
			if _, err := (Registries{}).Publish(t.Context(), p); err == nil {
				won.Add(1)
			} else {
				wantPublished(t, err)
			}
		})
	}
	all.Wait()
	if got := won.Load(); got != 1 {
		t.Errorf("%d publications of different files have succeeded, want 1", got)
	}
}

func wantPublished(t *testing.T, err error) {
	t.Helper()
	if !strings.Contains(err.Error(), "holds other files already") {
		t.Errorf("error %v, want one about a taken version", err)
	}
}

// A version that appears between list and create is not overwritten.
func TestDirectoryKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	d := directory(t.TempDir())
	for _, content := range []string{"first", "second"} {
		if err := d.create(t.Context(), "pool-1.0.0.tar.zst", strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"pool-1.0.0.tar.zst": "first"}
	if got := tree(t, string(d)); !maps.Equal(got, want) {
		t.Errorf("the directory has %q, want %q", got, want)
	}
}
