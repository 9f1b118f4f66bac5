package filelock_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fray-ml/fray/filelock"
)

// TestLock: a lock is had once, is seen by others, and lapses with its file.
func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	held(t, path, false)
	f, err := filelock.Take(path)
	if err != nil {
		t.Fatal(err)
	}
	held(t, path, true)
	if _, err := filelock.Take(path); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("taken twice: %v, want ErrHeld", err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	given := errors.New("given up")
	cancel(given)
	if _, err := filelock.Wait(ended, path, time.Millisecond); !errors.Is(err, given) {
		t.Errorf("waited for after the end: %v, want its cause", err)
	}
	f.Close()
	held(t, path, false)
	again, err := filelock.Wait(t.Context(), path, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := filelock.Release(again); err != nil {
		t.Fatal(err)
	}
	held(t, path, false)
}

// TestInherited: a child that has the file holds the lock after its parent closed it.
func TestInherited(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	f, err := filelock.Take(path)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("cat") // until its input ends
	child.ExtraFiles = append(child.ExtraFiles, f)
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	held(t, path, true)
	input.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	held(t, path, false)
}

func held(t *testing.T, path string, want bool) {
	t.Helper()
	if got, err := filelock.IsHeld(path); err != nil || got != want {
		t.Errorf("held %v, %v; want %v", got, err, want)
	}
}
