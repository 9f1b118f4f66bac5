package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fray-ml/fray/state/store"
)

// The baseline is the least that survives a power failure: write, sync,
// rename, sync of the directory.
func BenchmarkDirPut(b *testing.B) {
	data := make([]byte, 1000)
	b.Run("sync and rename", func(b *testing.B) {
		folder := b.TempDir()
		for b.Loop() {
			if err := replaceFile(folder, data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("put", func(b *testing.B) {
		d, err := store.CreateDir(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := d.Put(b.Context(), "state.json", data, store.Any); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func replaceFile(folder string, data []byte) error {
	f, err := os.Create(filepath.Join(folder, "tmp"))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(folder, "state.json")); err != nil {
		return err
	}
	parent, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer parent.Close()
	return parent.Sync()
}

// The baseline is a walk that only counts the files.
func BenchmarkDirList(b *testing.B) {
	const slices, hosts = 250, 4
	d, err := store.CreateDir(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for i := range slices {
		for host := range hosts {
			path := filepath.Join(d.Location(), store.HostKey(fmt.Sprintf("s-%d", i), host))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("walk", func(b *testing.B) {
		for b.Loop() {
			if n := countFiles(b, filepath.Join(d.Location(), "hosts")); n != slices*hosts {
				b.Fatalf("%d files", n)
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if list, err := d.List(b.Context(), store.HostsPrefix); err != nil || len(list) != slices*hosts {
				b.Fatalf("%d objects, %v", len(list), err)
			}
		}
	})
}

func countFiles(b *testing.B, root string) int {
	b.Helper()
	n := 0
	err := filepath.WalkDir(root, func(_ string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return n
}
