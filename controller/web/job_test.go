package web

import (
	"testing"

	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// TestChosenAlternative: the page of a job has which alternative it has and why, and lists
// show that as its shape.
func TestChosenAlternative(t *testing.T) {
	all := []schema.Accelerator{"v5litepod-16", "h100:8"}
	jobOn := func(name string, c *state.Choice) *state.Job {
		spec := localJob(name, func(j *schema.Job) { j.Resources.Accelerators, j.Resources.TPU = all, "v5litepod-16" })
		return &state.Job{ID: "id-" + name, Spec: &spec, Status: schema.JobPending, Choice: c}
	}
	doc := &state.Document{Lineage: "abcdefghijklmnop", Jobs: map[schema.Address]*state.Job{}}
	for _, j := range []*state.Job{jobOn("waits", nil), jobOn("train", &state.Choice{
		Accelerator: "h100:8", Reason: state.ChoiceBlocked, At: testTime,
		Passed: []state.PassedAlternative{{Accelerator: "v5litepod-16", Cause: state.PassedCapacity, Text: "us-east5-b: no capacity"}},
	})} {
		doc.Jobs[j.Spec.Addr] = j
	}
	s := pageOf(t, &Snapshot{View: access.View{Doc: doc, At: testTime}, Leads: true}, nil)

	train := decode[JobDetail](t, s, "/api/v1/jobs/job.train")
	if train.Shape != "8 h100" || len(train.Alternatives) != 2 {
		t.Errorf("got the shape %q of %v, want that of the chosen one of two", train.Shape, train.Alternatives)
	}
	switch c := train.Choice; {
	case c == nil:
		t.Error("the page has no choice")
	case c.Accelerator != "h100:8" || c.Reason != state.ChoiceBlocked || c.Text == "" || len(c.Passed) != 1 || c.Passed[0].Cause != state.PassedCapacity:
		t.Errorf("got the choice %+v", c)
	}
	waits := decode[JobDetail](t, s, "/api/v1/jobs/job.waits")
	if want := "v5litepod-16, else h100:8"; waits.Shape != want || waits.Choice != nil {
		t.Errorf("got the shape %q and choice %v, want %q and none", waits.Shape, waits.Choice, want)
	}
}
