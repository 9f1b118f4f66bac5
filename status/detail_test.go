package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// writtenLog is a log that a test writes.
type writtenLog struct {
	lines chan string // "" ends it
	ended chan error
}

func (w *writtenLog) follow(ctx context.Context, _ schema.Address, to io.Writer) error {
	for {
		select {
		case <-ctx.Done():
			w.ended <- ctx.Err()
			return ctx.Err()
		case line := <-w.lines:
			if line == "" {
				return errors.New("the bucket is away")
			}
			fmt.Fprint(to, line)
		}
	}
}

func triedTwice() *View {
	v := viewOf(map[string]*state.Job{"a": up(), "b": {
		Status: schema.JobRunning, Attempt: 2,
		Attempts: []state.Attempt{
			{Number: 1, Why: "first start", StartedAt: noon.Add(-time.Hour), EndedAt: noon.Add(-time.Minute), Outcome: schema.TaskFailed, Reason: "exit status 3"},
			{Number: 2, Why: "attempt 1 failed", StartedAt: noon, Tasks: []state.Task{{Slice: "s", State: schema.TaskRunning}}},
		},
	}}, plan.Pending{Addr: schema.Address{Kind: schema.KindJob, Name: "b"}, Reasons: []string{"its health check"}, Underway: true})
	return v
}

// Enter opens the job that the arrow keys selected: why its attempts began and ended, what
// it waits for, and its log as it is written. Esc goes back, and ends the reading.
func TestAJobOnTheScreen(t *testing.T) {
	w := &writtenLog{lines: make(chan string), ended: make(chan error, 1)}
	s := shows(newBoard(triedTwice()), 90, 30)
	s.logs = w.follow
	if s.row(paneJobs, 0).job.Name != "b" {
		pressed(s, "down")
	}
	_, await := s.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
	read := func(text string) {
		t.Helper()
		w.lines <- text
		_, await = s.Update(await())
	}
	see := func(wants ...string) {
		t.Helper()
		got := s.draw()
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("no %q on the screen:\n%s", want, got)
			}
		}
	}
	see("job.b  running", "began: first start", "ended: exit status 3", "waits: its health check", "▶ Log, followed", "Esc back")
	read("one\ntw")
	see("one")
	read("o\nx\x1b[31m\n")
	see("two", "x [31m")
	for n := range 60 {
		read(fmt.Sprintf("line %d\n", n))
	}
	see("line 59", "of 63")
	pressed(s, "up", "up")
	read("later\n")
	see("line 57")
	if got := s.draw(); strings.Contains(got, "later") {
		t.Errorf("who reads further up does not stay there:\n%s", got)
	}
	pressed(s, "end")
	see("later")
	pressed(s, "tab")
	see("▶ History", "─ Log, followed")
	pressed(s, "esc")
	see("▶ Jobs 2", "› job.b")
	if err := <-w.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the log ended with %v", err)
	}
	if _, next := s.Update(await()); next != nil {
		t.Error("a log that was closed is still waited for")
	}
}

// What keeps a log from being read is shown.
func TestAJobWithoutALog(t *testing.T) {
	w := &writtenLog{lines: make(chan string, 1)}
	s := shows(newBoard(triedTwice()), 90, 30)
	s.logs = w.follow
	w.lines <- ""
	_, await := s.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
	s.Update(await())
	if got := s.draw(); !strings.Contains(got, "Log, the bucket is away") {
		t.Errorf("the screen shows\n%s", got)
	}
	s.close()
}

// A job stays selected when others come before it.
func TestSelectionFollowsTheJob(t *testing.T) {
	v := viewOf(map[string]*state.Job{"a": up(), "b": up(), "c": up()})
	s := shows(newBoard(v), 80, 24)
	pressed(s, "down", "down")
	v = viewOf(map[string]*state.Job{"a": up(), "b": up(), "c": up(), "d": {Status: schema.JobFailed}})
	s.Update(observation{board: newBoard(v)})
	if got := s.draw(); !strings.Contains(got, "› job.c") {
		t.Errorf("the screen shows\n%s", got)
	}
}
