package incremental

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
)

// What came of an action has the jobs of its slice decided about, and no others: in a
// large fleet some creation is rejected in nearly every step. That the plan is what Diff
// makes is compared in each step.
func TestFoldedLooksAtTheJobsOfTheSlice(t *testing.T) {
	w := newWorld(t)
	stockout := false
	w.refuses = func(spec schema.SliceSpec) error {
		if stockout && spec.Owner == jobAddr("waits") {
			return errStockout
		}
		return nil
	}
	w.accept(configuration(newJob("runs"), newJob("waits")))
	stockout = true
	for range 8 {
		w.step(3 * time.Second)
	}
	runs := w.planner.index[jobAddr("runs")]
	if got := w.planner.conditions[runs]; got != steady {
		t.Fatalf("job.runs is in condition %d, want steady", got)
	}
	waits := w.doc.Jobs[jobAddr("waits")].Slices
	if len(waits) != 1 || w.doc.Slices[waits[0]].Failed != schema.ErrorCapacity {
		t.Fatalf("job.waits holds %v, want a slice that was rejected", waits)
	}

	fold := func(name string) {
		t.Helper()
		before := w.doc
		action := plan.Action{Verb: plan.RepairSlice, Slice: &w.doc.Slices[name].Spec}
		w.doc = w.planner.Folded(w.doc, action, &capacity.Failure{Kind: schema.ErrorUnavailable, Text: "no answer"}, w.now)
		if w.doc == before || w.planner.last != w.doc {
			t.Fatal("a call that failed has everything decided about again")
		}
	}
	fold(waits[0])
	if got := w.planner.conditions[runs]; got != steady {
		t.Errorf("after a failure for job.waits job.runs is in condition %d, want steady", got)
	}
	w.step(time.Second)
	fold(w.doc.Jobs[jobAddr("runs")].Slices[0])
	if got := w.planner.conditions[runs]; got != dirty {
		t.Errorf("after a failure for its slice job.runs is in condition %d, want dirty", got)
	}
	w.step(time.Second)

	other := *w.doc
	w.doc = w.planner.Folded(&other, plan.Action{Verb: plan.RepairSlice, Slice: &w.doc.Slices[waits[0]].Spec}, nil, w.now)
	if w.planner.last == w.doc {
		t.Error("a document that the last plan did not lead to has not everything decided about")
	}
	w.step(time.Second)
}
