package apply

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// TestKeepEnds: an end that is recorded counts under a state that was saved before it,
// with its attempt; a job that has begun another attempt since goes on.
func TestKeepEnds(t *testing.T) {
	ended := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	addr := schema.Address{Kind: schema.KindJob, Name: "a"}
	record := state.JobRecord{ID: "id", Status: schema.JobSucceeded, Attempt: 1, EndedAt: ended, Tasks: 1}
	running := state.Attempt{Number: 1, StartedAt: ended.Add(-time.Hour), Tasks: []state.Task{{State: schema.TaskRunning}}}
	for _, test := range []struct {
		name     string
		job      state.Job
		ends     bool
		attempts int
	}{
		{"before its attempt", state.Job{ID: "id", Status: schema.JobPending}, true, 1},
		{"in its attempt", state.Job{ID: "id", Status: schema.JobRunning, Attempt: 1, Attempts: []state.Attempt{running}}, true, 1},
		{"in a later attempt", state.Job{ID: "id", Status: schema.JobRunning, Attempt: 2, Attempts: []state.Attempt{running, {Number: 2}}}, false, 2},
		{"another job", state.Job{ID: "other", Status: schema.JobPending}, false, 0},
	} {
		spec := schema.Job{Addr: addr}
		test.job.Spec = &spec
		doc := &state.Document{Jobs: map[schema.Address]*state.Job{addr: &test.job}}
		got := keepEnds(doc, map[string]state.JobRecord{record.ID: record})
		j := got.Jobs[addr]
		if len(j.Attempts) != test.attempts || (j.Status == schema.JobSucceeded) != test.ends || (got != doc) != test.ends {
			t.Errorf("%s: got %+v", test.name, j)
			continue
		}
		if last := j.Last(); test.ends && (last.Number != 1 || last.Outcome != schema.TaskSucceeded || !last.EndedAt.Equal(ended)) {
			t.Errorf("%s: got attempt %+v, want that it succeeded", test.name, last)
		} else if test.ends && (len(last.Tasks) != 1 || last.Tasks[0].State != schema.TaskSucceeded) {
			t.Errorf("%s: got tasks %+v, want one that succeeded", test.name, last.Tasks)
		}
		if test.job.Status == schema.JobSucceeded {
			t.Errorf("%s: the state that was given has changed", test.name)
		}
	}
}
