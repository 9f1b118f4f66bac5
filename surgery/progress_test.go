package surgery

import (
	"slices"
	"testing"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func TestKeepProgress(t *testing.T) {
	addr := schema.Address{Kind: schema.KindJob, Name: "a"}
	slice := func(cause state.Cause) *state.Slice {
		return &state.Slice{Terminating: state.Termination{Cause: cause}}
	}
	document := func(j *state.Job, all map[string]*state.Slice) *state.Document {
		d := &state.Document{Slices: all, Jobs: map[schema.Address]*state.Job{}}
		if j != nil {
			d.Jobs[addr] = j
		}
		return d
	}
	job := func(id string, attempt int, status schema.JobStatus, replace bool, slices ...string) *state.Job {
		return &state.Job{ID: id, Attempt: attempt, Status: status, Slices: slices, JobRequests: state.JobRequests{Replace: replace}}
	}
	running := func(attempt int, replace bool) *state.Job {
		return job("x", attempt, schema.JobRunning, replace, "a-0")
	}
	for name, c := range map[string]struct {
		older, present         *state.Job
		olderSlice, nowSlice   *state.Slice
		wantPresent, wantSlice bool // the present one is kept
		notes                  []string
	}{
		"a replacement was carried out": {
			running(1, true), running(2, false), slice(state.CauseReplaced), slice(""), true, true, []string{"job.a goes on with attempt 2"},
		},
		"a request is not made once more": {running(2, true), running(2, false), slice(""), slice(""), true, true, nil},
		"it ended":                        {running(1, false), job("x", 1, schema.JobSucceeded, false), slice(""), nil, true, false, []string{"job.a has ended since"}},
		"it was created again": {
			running(4, false), job("y", 1, schema.JobRunning, false, "a-0"), slice(state.CauseJobRemoved), slice(""), true, true,
			[]string{"job.a goes on as it was created since"},
		},
		"it was removed":                  {running(1, false), nil, slice(""), nil, false, false, nil},
		"it was added":                    {nil, running(1, false), nil, slice(""), false, false, nil},
		"an older state of it was pushed": {running(3, false), running(2, true), slice(""), slice(state.CauseReplaced), false, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			all := func(s *state.Slice) map[string]*state.Slice {
				if s == nil {
					return map[string]*state.Slice{}
				}
				return map[string]*state.Slice{"a-0": s}
			}
			older := document(c.older, all(c.olderSlice))
			notes := keepProgress(older, document(c.present, all(c.nowSlice)))
			wantJob, wantSlice := c.older, c.olderSlice
			if c.wantPresent {
				wantJob = c.present
			}
			if c.wantSlice {
				wantSlice = c.nowSlice
			}
			if older.Jobs[addr] != wantJob {
				t.Errorf("the job is %+v, want %+v", older.Jobs[addr], wantJob)
			}
			if older.Slices["a-0"] != wantSlice {
				t.Errorf("the slice is %+v, want %+v", older.Slices["a-0"], wantSlice)
			}
			if !slices.Equal(notes, c.notes) {
				t.Errorf("notes %q, want %q", notes, c.notes)
			}
		})
	}
}
