package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

func TestDir(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return newDir(t) })
}

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return storetest.NewMemory() })
}

func newDir(t *testing.T) *store.Dir {
	t.Helper()
	d, err := store.CreateDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func put(t *testing.T, s store.Store, key, data string) store.Generation {
	t.Helper()
	gen, err := s.Put(t.Context(), key, []byte(data), store.Any)
	if err != nil {
		t.Fatal(err)
	}
	return gen
}

func wantContent(t *testing.T, s store.Store, key, want string) {
	t.Helper()
	object, err := s.Get(t.Context(), key)
	if err != nil || string(object.Data) != want {
		t.Errorf("%s: got %q, %v, want %q", key, object.Data, err, want)
	}
}

// staged are the temporary files of a directory store.
func staged(t *testing.T, d *store.Dir) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(d.Location(), ".tmp", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestOpenDir(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.OpenDir(filepath.Join(base, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open of nothing: got %v, want ErrNotExist", err)
	}
	for name, path := range map[string]string{"a file": file, "below a file": filepath.Join(file, "below")} {
		for _, open := range []func(string) (*store.Dir, error){store.OpenDir, store.CreateDir} {
			if _, err := open(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move it away") {
				t.Errorf("%s: got %v, want an error that names %s and says what to do", name, err, path)
			}
		}
	}
	path := filepath.Join(base, "new", "store")
	d, err := store.CreateDir(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, d, "state.json", "kept")
	for _, open := range []func(string) (*store.Dir, error){store.OpenDir, store.CreateDir} {
		again, err := open(path)
		if err != nil {
			t.Fatal(err)
		}
		wantContent(t, again, "state.json", "kept")
	}
}

func TestDirIsPrivate(t *testing.T) {
	d := newDir(t)
	put(t, d, "logs/job.a/1/0/00000000", "secret text")
	for path, want := range map[string]fs.FileMode{"logs": 0o700, "logs/job.a/1/0/00000000": 0o600} {
		info, err := os.Stat(filepath.Join(d.Location(), path))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got mode %v, %v, want %v", path, info.Mode().Perm(), err, want)
		}
	}
}

func TestDirDeleteRemovesEmptyDirectories(t *testing.T) {
	d := newDir(t)
	put(t, d, "hosts/a/b/0.json", "x")
	put(t, d, "hosts/c.json", "y")
	if err := d.Delete(t.Context(), "hosts/a/b/0.json"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(d.Location(), "hosts", "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("hosts/a: got %v, want it gone", err)
	}
	wantContent(t, d, "hosts/c.json", "y")
}

// Deletes remove directories that puts are about to use.
func TestDirPutsBesideDeletes(t *testing.T) {
	d := newDir(t)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			key := fmt.Sprintf("hosts/deep/er/%d.json", worker)
			for range 30 {
				if _, err := d.Put(t.Context(), key, []byte("x"), store.Absent); err != nil {
					t.Error(err)
				}
				if err := d.Delete(t.Context(), key); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if files := staged(t, d); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

func TestDirSweepsOldLeftovers(t *testing.T) {
	d := newDir(t)
	path := func(name string) string { return filepath.Join(d.Location(), name) }
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{".tmp/old", ".tmp/new", ".locks/holder-0a", ".locks/holder-0b"} {
		if err := os.WriteFile(path(name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(name, "new") {
			continue
		}
		if err := os.Chtimes(path(name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	alive, err := os.Open(path(".locks/holder-0b"))
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	if err := unix.Flock(int(alive.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if list, err := d.List(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("list: got %v, %v, want nothing", list, err)
	}
	if _, err := store.OpenDir(d.Location()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		".tmp/old": false, ".tmp/new": true, ".locks/holder-0a": false, ".locks/holder-0b": true,
	} {
		if _, err := os.Stat(path(name)); (err == nil) != want {
			t.Errorf("%s: is there: %v, want %v", name, err == nil, want)
		}
	}
}

// A synctest bubble's clock starts in the year 2000: decades behind the files.
func TestDirGenerationsRiseWhenTheClockIsSetBack(t *testing.T) {
	d := newDir(t)
	last := put(t, d, "state.json", "of today")
	synctest.Test(t, func(t *testing.T) {
		next := func(why string, gen store.Generation) {
			t.Helper()
			if gen <= last {
				t.Errorf("%s: generation %d after %d", why, gen, last)
			}
			last = gen
		}
		next("written over", put(t, d, "state.json", "of long ago"))
		for range 3 {
			if err := d.Delete(t.Context(), "state.json"); err != nil {
				t.Fatal(err)
			}
			next("made again", put(t, d, "state.json", "of long ago"))
		}
	})
}

// Archives without times unpack files of 1970.
func TestDirObjectWithoutATimeExists(t *testing.T) {
	d := newDir(t)
	put(t, d, "state.json", "restored")
	for _, at := range []time.Time{time.Unix(0, 0), time.Unix(-1, 0)} {
		if err := os.Chtimes(filepath.Join(d.Location(), "state.json"), at, at); err != nil {
			t.Fatal(err)
		}
		object, err := d.Get(t.Context(), "state.json")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Put(t.Context(), "state.json", nil, store.Absent); !errors.Is(err, store.ErrConflict) {
			t.Errorf("put as absent: got %v, want ErrConflict", err)
		}
		if _, err := d.Put(t.Context(), "state.json", []byte("restored"), object.Generation); err != nil {
			t.Errorf("put over it: %v", err)
		}
	}
}

func TestDirThatWentAwayIsNotEmpty(t *testing.T) {
	d := newDir(t)
	if err := os.RemoveAll(d.Location()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get(t.Context(), "state.json"); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("get: got %v, want an error that is not ErrNotFound", err)
	}
	if list, err := d.List(t.Context(), "hosts/"); err == nil {
		t.Errorf("list: got %v, want an error", list)
	}
	if _, err := d.Put(t.Context(), "state.json", nil, store.Any); err == nil {
		t.Error("put: got no error")
	}
	if _, err := os.Stat(d.Location()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is back: %v", err)
	}
}

func TestDirFileInTheWay(t *testing.T) {
	d := newDir(t)
	put(t, d, "hosts/a", "a file")
	put(t, d, "assign/b/c", "below a directory")
	for _, test := range []struct {
		key  string
		want syscall.Errno
	}{{"hosts/a/0.json", syscall.ENOTDIR}, {"assign/b", syscall.EEXIST}} {
		_, err := d.Put(t.Context(), test.key, []byte("x"), store.Any)
		wantExplained(t, err, test.want, filepath.Join(d.Location(), test.key))
	}
	wantContent(t, d, "hosts/a", "a file")
	wantContent(t, d, "assign/b/c", "below a directory")
	if files := staged(t, d); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

// wantExplained wants an error of the system that names a file and says, after
// a semicolon, what to do.
func wantExplained(t *testing.T, err error, want syscall.Errno, path string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
		return
	}
	if !strings.Contains(err.Error(), path+": ") || !strings.Contains(err.Error(), "; ") || strings.Contains(err.Error(), ".tmp") {
		t.Errorf("%q: want it to name %s and say what to do", err, path)
	}
}

func TestDirWaitForALockEndsWithItsContext(t *testing.T) {
	d := newDir(t)
	before, err := filepath.Glob(filepath.Join(d.Location(), ".locks", "*"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, d, "state.json", "old")
	locks, err := filepath.Glob(filepath.Join(d.Location(), ".locks", "*"))
	locks = slices.DeleteFunc(locks, func(path string) bool { return slices.Contains(before, path) })
	if err != nil || len(locks) != 1 {
		t.Fatalf("locks: got %v, %v, want one", locks, err)
	}
	other, err := os.OpenFile(locks[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.Put(ctx, "state.json", []byte("new"), store.Any); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's end", err)
	}
	wantContent(t, d, "state.json", "old") // readers do not wait
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, d, "state.json", "new")
	wantContent(t, d, "state.json", "new")
}

// The cause says more than "context canceled" when a lease is lost.
func TestDirWriteAfterALostLeaseSaysSo(t *testing.T) {
	d := newDir(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("%w: taken over", store.ErrLeaseLost))
	if _, err := d.Put(ctx, "state.json", nil, store.Any); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("got %v, want ErrLeaseLost", err)
	}
}

// laterEnded is a context that has ended when it is looked at again.
type laterEnded struct {
	context.Context
	looks int
}

func (c *laterEnded) Err() error {
	c.looks++
	if c.looks > 1 {
		return context.Canceled
	}
	return nil
}

// A lease may be lost while a write is being synced; then it must not happen.
func TestDirPutWhoseContextEndsMeanwhile(t *testing.T) {
	d := newDir(t)
	put(t, d, "state.json", "old")
	ctx := &laterEnded{Context: context.WithoutCancel(t.Context())}
	if _, err := d.Put(ctx, "state.json", []byte("new"), store.Any); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	wantContent(t, d, "state.json", "old")
	if files := staged(t, d); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}
