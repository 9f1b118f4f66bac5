package modules

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestGetOnAFullDisk(t *testing.T) {
	w := newWorld(t)
	big := make([]byte, 300<<10)
	_, _ = rand.Read(big) // it cannot fail, and does not compress
	w.has("pool-1.0.0.tar.zst", map[string]string{"main.hcl": "", "big": string(big)})
	w.calls("pool")
	err := unix.Mount("tmpfs", w.root, "tmpfs", 0, "size=512k")
	if errors.Is(err, unix.EPERM) {
		t.Skip("mounting a small file system needs root")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(w.root, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	w.calls("pool")
	_, err = w.get(Getter{})
	wantError(t, err, "no space left on device", "free space and run the command again")
	if left, err := filepath.Glob(filepath.Join(w.root, ".fray", ".modules", "[.p]*")); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v; want .gitignore only", left, err)
	}
	if _, err := os.Stat(filepath.Join(w.root, LockFile)); !os.IsNotExist(err) {
		t.Errorf("a module that could not be installed was locked (%v)", err)
	}
	if err := unix.Mount("tmpfs", w.root, "tmpfs", unix.MS_REMOUNT, "size=4m"); err != nil {
		t.Fatal(err)
	}
	w.wantGet(Getter{}, "pool 1.0.0 fetched", "locked")
	got, err := os.ReadFile(filepath.Join(w.root, LockFile))
	if err != nil || !bytes.Contains(got, []byte("1.0.0")) {
		t.Errorf("the lock file is %q, %v", got, err)
	}
}
