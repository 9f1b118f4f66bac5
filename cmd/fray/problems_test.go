package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/terminal"
)

// A wait for a store is reported with its cause, and not at each try.
func TestProblemsAreReported(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	told := &problemNotice{app: &terminal.Terminal{Stderr: &out}, now: func() time.Time { return now }}
	for range 3 {
		told.report(errors.New("connection refused"))
		now = now.Add(problemPace / 2)
	}
	if got := strings.Count(out.String(), "connection refused\n"); got != 2 {
		t.Errorf("it says so %d times, want 2, one for each %v: %q", got, problemPace, out.String())
	}
}
