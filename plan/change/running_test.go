package change_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// TestRunning: of what a plan restarts, replaces or deletes, what runs, with how long its last
// attempt has; of reservations, since when their slices are up.
func TestRunning(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	job := func(name string) schema.Address { return schema.ScopedAddress(schema.KindJob, name) }
	pool := schema.ScopedAddress(schema.KindReservation, "pool")
	attempt := func(number int, began time.Duration, outcome schema.TaskState) state.Attempt {
		return state.Attempt{Number: number, StartedAt: now.Add(-began), Outcome: outcome, Slices: []string{"s"}}
	}
	doc := &state.Document{
		Jobs: map[schema.Address]*state.Job{
			job("deleted"):   {Attempts: []state.Attempt{attempt(1, 9*time.Hour, schema.TaskFailed), attempt(2, 3*time.Hour, "")}},
			job("replaced"):  {Attempts: []state.Attempt{attempt(7, time.Minute, "")}},
			job("restarted"): {Attempts: []state.Attempt{attempt(1, 1500*time.Millisecond, "")}},
			job("ended"):     {Attempts: []state.Attempt{attempt(1, time.Hour, schema.TaskSucceeded)}},
			job("updated"):   {Attempts: []state.Attempt{attempt(1, time.Hour, "")}},
			job("future"):    {Attempts: []state.Attempt{attempt(1, -time.Hour, "")}}, // by another clock
			job("waiting"):   {},
		},
		Slices: map[string]*state.Slice{
			"a": {Spec: schema.SliceSpec{Owner: pool}, UpAt: now.Add(-time.Hour)},
			"b": {Spec: schema.SliceSpec{Owner: pool}, UpAt: now.Add(-2 * time.Hour)},
			"c": {Spec: schema.SliceSpec{Owner: pool}}, // it is not up yet
			"d": {Spec: schema.SliceSpec{Owner: job("deleted")}, UpAt: now.Add(-5 * time.Hour)},
		},
	}
	p := &plan.Plan{Changes: []plan.Change{
		{Addr: pool, Verb: plan.VerbDelete},
		{Addr: schema.ScopedAddress(schema.KindReservation, "empty"), Verb: plan.VerbDelete},
		{Addr: job("deleted"), Verb: plan.VerbDelete}, {Addr: job("replaced"), Verb: plan.VerbReplace}, {Addr: job("restarted"), Verb: plan.VerbRestart},
		{Addr: job("ended"), Verb: plan.VerbDelete}, {Addr: job("updated"), Verb: plan.VerbUpdate}, {Addr: job("future"), Verb: plan.VerbDelete},
		{Addr: job("waiting"), Verb: plan.VerbReplace}, {Addr: job("new"), Verb: plan.VerbReplace},
	}}
	want := []plan.Running{
		{Addr: pool, Verb: plan.VerbDelete, Slices: 2, Since: now.Add(-2 * time.Hour), Seconds: 7200},
		{Addr: job("deleted"), Verb: plan.VerbDelete, Attempt: 2, Slices: 1, Since: now.Add(-3 * time.Hour), Seconds: 10800},
		{Addr: job("replaced"), Verb: plan.VerbReplace, Attempt: 7, Slices: 1, Since: now.Add(-time.Minute), Seconds: 60},
		{Addr: job("restarted"), Verb: plan.VerbRestart, Attempt: 1, Slices: 1, Since: now.Add(-1500 * time.Millisecond), Seconds: 1},
		{Addr: job("future"), Verb: plan.VerbDelete, Attempt: 1, Slices: 1, Since: now.Add(time.Hour)},
	}
	if diff := cmp.Diff(want, change.Running(doc, p, now), cmpopts.EquateComparable(schema.Address{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
