package hostdir

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/fray-ml/fray/filelock"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l")
	if held, err := filelock.IsHeld(path); held || err != nil {
		t.Errorf("a lock without a file is held: %v, %v", held, err)
	}
	lock, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Holder{PID: 7, Grace: 1.5, Ports: []int{80}}
	if err := WriteHolder(lock, want); err != nil {
		t.Fatal(err)
	}
	if held, err := filelock.IsHeld(path); !held || err != nil {
		t.Errorf("a held lock is held: %v, %v", held, err)
	}
	if got, err := ReadHolder(path); err != nil || got.PID != want.PID || got.Grace != want.Grace || len(got.Ports) != 1 {
		t.Errorf("holder is %+v, %v, want %+v", got, err, want)
	}
	if _, err := TryLock(path); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("second lock: %v", err)
	}
	short, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, filelock.ErrHeld)
	defer cancel()
	if _, err := WaitLock(short, path); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("waiting for a held lock: %v", err)
	}
	lock.Close()
	next, err := WaitLock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	// The old holder's word does not outlive its lock.
	if h, err := ReadHolder(path); err == nil {
		t.Errorf("the new lock has the old holder %+v", h)
	}
}

func TestMarkOrder(t *testing.T) {
	for _, test := range []struct {
		a, b Mark
		want bool
	}{
		{Mark{1, 1}, Mark{1, 2}, true},
		{Mark{1, 2}, Mark{1, 1}, false},
		{Mark{1, 9}, Mark{2, 1}, true},
		{Mark{2, 1}, Mark{1, 9}, false},
		{Mark{1, 1}, Mark{1, 1}, false},
	} {
		if got := test.a.Before(test.b); got != test.want {
			t.Errorf("%v before %v: %v", test.a, test.b, got)
		}
	}
}
