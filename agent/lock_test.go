package agent

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
	lock, err := tryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	want := holder{PID: 7, Grace: 1.5, Ports: []int{80}}
	if err := writeHolder(lock, want); err != nil {
		t.Fatal(err)
	}
	if held, err := filelock.IsHeld(path); !held || err != nil {
		t.Errorf("a held lock is held: %v, %v", held, err)
	}
	if got, err := readHolder(path); err != nil || got.PID != want.PID || got.Grace != want.Grace || len(got.Ports) != 1 {
		t.Errorf("holder is %+v, %v, want %+v", got, err, want)
	}
	if _, err := tryLock(path); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("second lock: %v", err)
	}
	short, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, filelock.ErrHeld)
	defer cancel()
	if _, err := waitLock(short, path); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("waiting for a held lock: %v", err)
	}
	lock.Close()
	next, err := waitLock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	// The old holder's word does not outlive its lock.
	if h, err := readHolder(path); err == nil {
		t.Errorf("the new lock has the old holder %+v", h)
	}
}

func TestMarkOrder(t *testing.T) {
	for _, test := range []struct {
		a, b mark
		want bool
	}{
		{mark{1, 1}, mark{1, 2}, true},
		{mark{1, 2}, mark{1, 1}, false},
		{mark{1, 9}, mark{2, 1}, true},
		{mark{2, 1}, mark{1, 9}, false},
		{mark{1, 1}, mark{1, 1}, false},
	} {
		if got := test.a.before(test.b); got != test.want {
			t.Errorf("%v before %v: %v", test.a, test.b, got)
		}
	}
}
