package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mounted is a directory on a file system of its own, or a skip where this user
// may not mount.
func mounted(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, options)
	if errors.Is(err, unix.EPERM) {
		t.Skip("mounting a small file system needs root")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endProcesses(dir)
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// A full disk stops an apply with an error that names the file and says what
// to do; the state is what it was, and with space again the next apply goes on.
func TestFullDisk(t *testing.T) {
	dir := mounted(t, "size=512k")
	writeConfig(t, dir, sleeper)
	if _, stderr, code := frayIn(t, dir, "apply", "--auto-approve"); code != 0 {
		t.Fatalf("apply with space: exit %d\n%s", code, stderr)
	}
	state := filepath.Join(dir, ".fray", "state.json")
	before, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(dir, "filler")
	fill(t, filler)

	writeConfig(t, dir, strings.Replace(sleeper, "1000", "2000", 1))
	_, stderr, code := frayIn(t, dir, "apply", "--auto-approve", "--timeout=5s")
	if code == 0 || !strings.Contains(stderr, "no space left on device") || !strings.Contains(stderr, "free") {
		t.Errorf("apply on a full disk: exit %d, want an error that says to free space:\n%s", code, stderr)
	}
	after, err := os.ReadFile(state)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the state changed on a full disk (%v)", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := frayIn(t, dir, "apply", "--auto-approve"); code != 0 {
		t.Errorf("apply with space again: exit %d\n%s", code, stderr)
	}
	if stdout, stderr, code := frayIn(t, dir, "destroy", "--auto-approve"); code != 0 || !strings.Contains(stdout, "Destroy complete") {
		t.Errorf("destroy: exit %d\n%s%s", code, stdout, stderr)
	}
}

// fill writes a file until the disk is full, but for what its directory needs
// to keep the configuration writable.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := bytes.Repeat([]byte{1}, 4096)
	for {
		if _, err := f.Write(block); err != nil {
			break
		}
	}
	if err := f.Close(); err != nil && !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

// In a directory that may not be written, plan works and apply says why not.
func TestReadOnlyDirectory(t *testing.T) {
	dir := mounted(t, "size=512k")
	writeConfig(t, dir, sleeper)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := frayIn(t, dir, "plan"); code != 0 {
		t.Errorf("plan: exit %d\n%s", code, stderr)
	}
	_, stderr, code := frayIn(t, dir, "apply", "--auto-approve")
	if code != exitError || !strings.Contains(stderr, "read-only file system") || !strings.Contains(stderr, ".fray") {
		t.Errorf("apply: exit %d, want an error that names the directory:\n%s", code, stderr)
	}
}
