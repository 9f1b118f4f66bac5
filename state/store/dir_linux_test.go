package store_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/state/store"
)

// mounted mounts a small file system in memory, or skips the test.
func mounted(t *testing.T, options string) string {
	t.Helper()
	path := t.TempDir()
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, options); err != nil {
		t.Skipf("this user may not mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(path, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return path
}

func TestDirOnAFullDisk(t *testing.T) {
	d, err := store.CreateDir(mounted(t, "size=256k"))
	if err != nil {
		t.Fatal(err)
	}
	gen := put(t, d, "state.json", "old")
	large := strings.Repeat("x", 1<<20)
	_, err = d.Put(t.Context(), "state.json", []byte(large), gen)
	wantExplained(t, err, syscall.ENOSPC, filepath.Join(d.Location(), "state.json"))
	err = d.Upload(t.Context(), "logs/blob", strings.NewReader(large))
	wantExplained(t, err, syscall.ENOSPC, filepath.Join(d.Location(), "logs/blob"))
	wantContent(t, d, "state.json", "old")
	if files := staged(t, d); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
	if _, err := d.Put(t.Context(), "state.json", []byte("fits"), gen); err != nil {
		t.Errorf("once it fits: %v", err)
	}
}

// Old versions make room for the state, one by one, and only for it.
func TestDirOnADiskThatVersionsFill(t *testing.T) {
	d, err := store.CreateDir(mounted(t, "size=512k"))
	if err != nil {
		t.Fatal(err)
	}
	content := func(n int) string { return strings.Repeat(string(rune('a'+n)), 60_000) }
	for n := range 20 {
		put(t, d, store.StateKey, content(n))
		wantContent(t, d, store.StateKey, content(n))
	}
	kept := contents(t, d)
	if len(kept) < 4 {
		t.Errorf("%d versions are left, want all for which there is room", len(kept))
	}
	for i, got := range kept {
		if got != content(19-i) {
			t.Errorf("version %d: got %.5s…, want %.5s…", i, got, content(19-i))
		}
	}
	_, err = d.Put(t.Context(), "hosts/a/0.json", []byte(strings.Repeat("x", 200_000)), store.Any)
	wantErrno(t, err, syscall.ENOSPC)
	if got := contents(t, d); len(got) != len(kept) {
		t.Errorf("%d versions are left after another object's write, want %d", len(got), len(kept))
	}
	_, err = d.Put(t.Context(), store.StateKey, []byte(strings.Repeat("x", 1<<20)), store.Any)
	wantErrno(t, err, syscall.ENOSPC)
	wantContent(t, d, store.StateKey, content(19))
	if files := staged(t, d); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

func TestDirOnADiskWithoutRoomForFiles(t *testing.T) {
	path := mounted(t, "size=1m,nr_inodes=12")
	d, err := store.CreateDir(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, d, "state.json", "old")
	for n := 0; err == nil; n++ {
		err = os.WriteFile(filepath.Join(path, strings.Repeat("f", n+1)), nil, 0o600)
	}
	_, err = d.Put(t.Context(), "state.json", []byte("new"), store.Any)
	wantExplained(t, err, syscall.ENOSPC, filepath.Join(path, "state.json"))
	again, err := store.OpenDir(path)
	if err != nil {
		t.Fatalf("open for reading: %v", err)
	}
	wantContent(t, again, "state.json", "old")
}

func TestDirOnAReadOnlyFileSystem(t *testing.T) {
	path := mounted(t, "size=256k")
	d, err := store.CreateDir(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, d, "hosts/a/0.json", "old")
	if err := unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	again, err := store.OpenDir(path)
	if err != nil {
		t.Fatalf("open for reading: %v", err)
	}
	for _, d := range []*store.Dir{d, again} {
		wantContent(t, d, "hosts/a/0.json", "old")
		if list, err := d.List(t.Context(), ""); err != nil || len(list) != 1 {
			t.Errorf("list: got %v, %v, want one object", list, err)
		}
		_, err := d.Put(t.Context(), "hosts/a/0.json", []byte("new"), store.Any)
		wantErrno(t, err, syscall.EROFS)
		wantErrno(t, d.Delete(t.Context(), "hosts/a/0.json"), syscall.EROFS)
		wantErrno(t, d.Upload(t.Context(), "logs/blob", strings.NewReader("x")), syscall.EROFS)
		_, err = store.Acquire(t.Context(), d, store.LeaseConfig{})
		wantErrno(t, err, syscall.EROFS)
		wantContent(t, d, "hosts/a/0.json", "old")
	}
}

func wantErrno(t *testing.T, err error, want syscall.Errno) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), "; ") {
		t.Errorf("got %v, want %v and what to do", err, want)
	}
}

// unprivileged gives up root's right to read and write anywhere, for this test only.
func unprivileged(t *testing.T, d *store.Dir) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	if err := os.Chmod(filepath.Dir(d.Location()), 0o755); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	const otherUser = 65534
	if _, err := unix.SetfsuidRetUid(otherUser); err != nil {
		t.Skipf("cannot act as another user: %v", err)
	}
	t.Cleanup(func() {
		if _, err := unix.SetfsuidRetUid(0); err != nil {
			t.Errorf("become root again: %v", err)
			return
		}
		runtime.UnlockOSThread()
	})
}

func TestDirThatMayNotBeWritten(t *testing.T) {
	d := newDir(t)
	put(t, d, "state.json", "old")
	for path, mode := range map[string]os.FileMode{"": 0o555, ".tmp": 0o555, ".locks": 0o555, "state.json": 0o444} {
		if err := os.Chmod(filepath.Join(d.Location(), path), mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(d.Location(), path), 0o700) })
	}
	unprivileged(t, d)
	again, err := store.OpenDir(d.Location())
	if err != nil {
		t.Fatalf("open for reading: %v", err)
	}
	for _, d := range []*store.Dir{d, again} {
		wantContent(t, d, "state.json", "old")
		_, err := d.Put(t.Context(), "state.json", []byte("new"), store.Any)
		wantErrno(t, err, syscall.EACCES)
		wantContent(t, d, "state.json", "old")
	}
}

func TestDirThatMayNotBeRead(t *testing.T) {
	d := newDir(t)
	put(t, d, "hosts/a/0.json", "x")
	for path, mode := range map[string]os.FileMode{"hosts/a/0.json": 0o000, "hosts/a": 0o000, "hosts": 0o755} {
		if err := os.Chmod(filepath.Join(d.Location(), path), mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(d.Location(), path), 0o700) })
	}
	unprivileged(t, d)
	if _, err := d.Get(t.Context(), "hosts/a/0.json"); !errors.Is(err, syscall.EACCES) {
		t.Errorf("get: got %v, want EACCES", err)
	}
	if list, err := d.List(t.Context(), ""); !errors.Is(err, syscall.EACCES) {
		t.Errorf("list: got %v, %v, want EACCES and not a part", list, err)
	}
}

// ext2 with small inodes keeps whole seconds only.
func TestDirWithoutNanosecondsIsRefused(t *testing.T) {
	image, path := filepath.Join(t.TempDir(), "image"), t.TempDir()
	for _, command := range [][]string{
		{"truncate", "-s", "2M", image},
		{"mkfs.ext2", "-q", "-I", "128", image},
		{"mount", "-o", "loop", image, path},
	} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no such file system to be had: %v: %s", err, out)
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(path, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	for name, open := range map[string]func(string) (*store.Dir, error){"open": store.OpenDir, "create": store.CreateDir} {
		if _, err := open(path); err == nil || !strings.Contains(err.Error(), "nanosecond") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want an error that says nanoseconds are missing in %s", name, err, path)
		}
	}
}
