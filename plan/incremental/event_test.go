package incremental

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// eventTexts are events as "kind address slice: text".
func eventTexts(events []state.Event) []string {
	var out []string
	for _, e := range events {
		about := ""
		if (e.Addr != schema.Address{}) {
			about = e.Addr.String() + " "
		}
		out = append(out, strings.TrimSpace(string(e.Kind)+" "+about+e.Slice)+": "+e.Text)
	}
	return out
}

func TestEvents(t *testing.T) {
	now := time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC)
	a, b := jobAddr("a"), jobAddr("b")
	docOf := func(jobs map[schema.Address]*state.Job, slices map[string]*state.Slice) *state.Document {
		return &state.Document{Revision: 1, Jobs: jobs, Slices: slices}
	}
	with := func(status schema.JobStatus, reason string, attempts ...state.Attempt) map[schema.Address]*state.Job {
		return map[schema.Address]*state.Job{a: {ID: "a-1", Status: status, Reason: reason, Attempts: attempts}}
	}
	sliceOf := func(s state.Slice) map[string]*state.Slice {
		s.Spec = schema.SliceSpec{Name: "a-0", Owner: a, Zone: "west"}
		return map[string]*state.Slice{"a-0": &s}
	}
	began := state.Attempt{Number: 1, Why: "first start", StartedAt: now}
	ready := began
	ready.ReadyAt = now
	ended := ready
	ended.Outcome, ended.Reason = schema.TaskWorkerFailed, "host 2 is silent"
	second := state.Attempt{Number: 2, Why: "attempt 1 worker failed", StartedAt: now}
	for _, test := range []struct {
		name          string
		before, after *state.Document
		drift         []plan.Drift
		want          []string
	}{
		{"nothing", docOf(with(schema.JobRunning, "", began), nil), docOf(with(schema.JobRunning, "", began), nil), nil, nil},
		{"a new job waits", docOf(nil, nil), docOf(with(schema.JobPending, "no capacity"), nil), nil, []string{"pending job.a: waits: no capacity"}},
		{"an attempt begins", docOf(with(schema.JobPending, ""), nil), docOf(with(schema.JobRunning, "", began), nil), nil, []string{"started job.a: attempt 1 began: first start"}},
		{"it is up", docOf(with(schema.JobRunning, "", began), nil), docOf(with(schema.JobRunning, "", ready), nil), nil, []string{"ready job.a: attempt 1 is up"}},
		{
			"it ends, and another one begins",
			docOf(with(schema.JobRunning, "", ready), nil), docOf(with(schema.JobRunning, "", ended, second), nil), nil,
			[]string{"ended job.a: attempt 1 worker failed: host 2 is silent", "started job.a: attempt 2 began: attempt 1 worker failed"},
		},
		{"the job ends", docOf(with(schema.JobRunning, "", ended), nil), docOf(with(schema.JobFailed, "exit 3", ended), nil), nil, []string{"job job.a: failed: exit 3"}},
		{"the job is gone", docOf(with(schema.JobFailed, "", ended), nil), docOf(nil, nil), nil, []string{"job job.a: is gone"}},
		{
			"its name is taken again",
			docOf(with(schema.JobSucceeded, "", ended), nil),
			docOf(map[schema.Address]*state.Job{a: {ID: "a-2", Status: schema.JobPending, Launch: &state.Launch{Parent: "p-1", ParentAttempt: 3}}}, nil), nil,
			[]string{"launched job.a: was launched by p-1, attempt 3"},
		},
		{
			"a user launches",
			docOf(nil, nil), docOf(map[schema.Address]*state.Job{b: {ID: "b-1", Launch: &state.Launch{By: "ada"}}}, nil), nil,
			[]string{"launched job.b: was launched: ada"},
		},
		{"a slice is asked for", docOf(nil, nil), docOf(nil, sliceOf(state.Slice{PendingSince: now})), nil, []string{"slice job.a a-0: is asked for: west"}},
		{"it is up", docOf(nil, sliceOf(state.Slice{PendingSince: now})), docOf(nil, sliceOf(state.Slice{PendingSince: now, UpAt: now})), nil, []string{"slice job.a a-0: is up"}},
		{"it is refused", docOf(nil, sliceOf(state.Slice{PendingSince: now})), docOf(nil, sliceOf(state.Slice{PendingSince: now, Failed: schema.ErrorCapacity, Error: "stockout"})), nil, []string{"slice job.a a-0: stockout"}},
		{"it goes", docOf(nil, sliceOf(state.Slice{PendingSince: now})), docOf(nil, sliceOf(state.Slice{PendingSince: now, Terminating: state.Termination{Cause: state.CauseEnded, Text: "it has ended"}})), nil, []string{"slice job.a a-0: goes: it has ended"}},
		{"it is gone", docOf(nil, sliceOf(state.Slice{PendingSince: now})), docOf(nil, nil), nil, []string{"slice job.a a-0: is gone"}},
		{"drift", docOf(nil, nil), docOf(nil, nil), []plan.Drift{{Addr: a, Found: "x is gone", Then: "is made again"}}, []string{"drift job.a: x is gone; is made again"}},
		{"another configuration", docOf(nil, nil), &state.Document{Revision: 2}, nil, []string{"config: revision 2 was accepted"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			events := change.Events(test.before, &plan.Plan{Next: test.after, Drift: test.drift}, now)
			if got := eventTexts(events); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
			for _, e := range events {
				if !e.At.Equal(now) {
					t.Errorf("%s at %v, want %v", e.Text, e.At, now)
				}
			}
		})
	}
}
