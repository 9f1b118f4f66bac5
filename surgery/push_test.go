package surgery

import (
	"slices"
	"testing"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// TestDropCarriedOut: an older state that is pushed keeps its edits, but orders no
// replacement or stop that was made since.
func TestDropCarriedOut(t *testing.T) {
	addr := schema.Address{Kind: schema.KindJob, Name: "a"}
	job := func(id string, attempt, failures int, requests state.JobRequests) *state.Job {
		return &state.Job{ID: id, Attempt: attempt, Failures: failures, Slices: []string{"a-0"}, JobRequests: requests}
	}
	replace := state.JobRequests{Replace: true}
	for name, c := range map[string]struct {
		older, current *state.Job
		done           bool
	}{
		"replaced since":          {job("x", 1, 0, replace), job("x", 2, 0, state.JobRequests{}), true},
		"stopped and resumed":     {job("x", 1, 0, state.JobRequests{Stop: true}), job("x", 2, 0, state.JobRequests{}), true},
		"it yielded":              {job("x", 1, 0, state.JobRequests{YieldsTo: addr}), job("x", 2, 0, state.JobRequests{}), true},
		"edited":                  {job("x", 1, 3, state.JobRequests{}), job("x", 2, 0, state.JobRequests{}), false},
		"still to be replaced":    {job("x", 1, 3, replace), job("x", 1, 0, replace), false},
		"another job of the name": {job("x", 1, 0, replace), job("y", 2, 0, state.JobRequests{}), false},
		"of later than now":       {job("x", 3, 0, replace), job("x", 2, 0, state.JobRequests{}), false},
	} {
		t.Run(name, func(t *testing.T) {
			document := func(j *state.Job, cause state.Cause) *state.Document {
				return &state.Document{
					Jobs:   map[schema.Address]*state.Job{addr: j},
					Slices: map[string]*state.Slice{"a-0": {Terminating: state.Termination{Cause: cause}}},
				}
			}
			older, current := document(c.older, state.CauseReplaced), document(c.current, state.CauseNone)
			done := dropCarriedOut(older, current)
			want, wantDone := c.older, []schema.Address(nil)
			if c.done {
				want, wantDone = c.current, []schema.Address{addr}
			}
			if older.Jobs[addr] != want || !slices.Equal(done, wantDone) {
				t.Errorf("the job is %+v and %v were carried out, want %+v and %v", older.Jobs[addr], done, want, wantDone)
			}
			if kept := older.Slices["a-0"].Terminating.IsZero(); kept != c.done {
				t.Errorf("the slice stays: %v, want %v", kept, c.done)
			}
		})
	}
}
