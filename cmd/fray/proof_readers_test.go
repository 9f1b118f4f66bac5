package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fray-ml/fray/state/store"
)

// TestReaders lets others look at a stack while an apply works on it: all
// succeed, none waits for it or writes anything.
func TestReaders(t *testing.T) {
	bucket := newEmulator(t)
	s := newProofStack(t, bucket)
	s.write(t, sleeper)
	s.must(t, "apply", "--auto-approve")

	door := newDoor(t, bucket, func(r *http.Request, _ bool) bool {
		return isUnder(r, store.AssignPrefix)
	}, (*emulator).serve)
	s.write(t, strings.Replace(sleeper, "1000", "2000", 1))
	apply := s.command(t, []string{"STORAGE_EMULATOR_HOST=" + strings.TrimPrefix(door.URL, "http://")}, "apply", "--auto-approve")
	ended := make(chan ending, 1)
	go func() {
		got, err := endingOf(apply)
		if err != nil {
			t.Error(err)
		}
		ended <- got
	}()
	select {
	case <-door.reached:
	case got := <-ended:
		t.Fatalf("the apply ended before it assigned anything: %v", got)
	}

	lookOnly(t, s)
	select {
	case got := <-ended:
		t.Errorf("the apply ended while others looked: %v", got)
	default:
	}
	door.awake.Store(true)
	close(door.wake)
	if got := <-ended; got.code != 0 || !strings.Contains(got.stdout, "1 restarted") {
		t.Errorf("the apply that others looked at: %v", got)
	}
	s.must(t, "plan", "--detailed-exitcode")
}

// lookOnly runs every command that reads a stack which an apply works on.
func lookOnly(t *testing.T, s *proofStack) {
	t.Helper()
	readers := newDoor(t, s.bucket, func(*http.Request, bool) bool { return false }, nil)
	readers.awake.Store(true)
	env := []string{"STORAGE_EMULATOR_HOST=" + strings.TrimPrefix(readers.URL, "http://")}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"plan"}, ""},
		{[]string{"status"}, "fray apply (pid "},
		{[]string{"state", "show", "job.one"}, `"status"`},
		{[]string{"state", "list"}, "job.one"},
		{[]string{"state", "pull"}, `"lineage"`},
		{[]string{"state", "lease"}, "held"},
		{[]string{"output"}, ""},
		{[]string{"validate"}, ""},
	} {
		got, err := s.run(t, env, c.args...)
		if err != nil || got.code != 0 || !strings.Contains(got.stdout, c.says) {
			t.Errorf("beside an apply, fray %s: %v, %v; want success and %q", strings.Join(c.args, " "), err, got, c.says)
		}
	}
	if got := readers.written(t); len(got) > 0 {
		t.Errorf("commands that only read wrote %q", got)
	}
}
