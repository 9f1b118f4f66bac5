package rehearse

import (
	"context"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
)

// A step at the time of a save does not begin the deletions whose evidence is not
// saved yet. They are no calls that the barrier could wait for.
func TestStepDoesNotWaitForCallsThatItDidNotBegin(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cfg := Config{Desired: training(2, "v5litepod-16", "us-west4-a"), Workloads: []Workload{{Job: "job.train", Work: time.Hour}}}
	r, err := open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.accept(ctx, cfg.Desired); err != nil {
		t.Fatal(err)
	}
	postponed := 0
	left := func() bool { return !r.allEnded() || len(r.stepper.Document().Slices) > 0 }
	for end := r.clock.Now().Add(settleWithin); left() && r.clock.Now().Before(end); r.sleep(end) {
		doc := *r.stepper.Document() // another document, which has to be saved
		if err := r.stepper.Accept(ctx, &doc); err != nil {
			t.Fatal(err)
		}
		if err := r.step(ctx); err != nil {
			t.Fatal(err)
		}
		if deletions(r.stepper.Last()) > r.stepper.Calls() {
			postponed++
		}
	}
	if left() {
		t.Errorf("slices are left: %v", r.stepper.Document().Slices)
	}
	if postponed == 0 {
		t.Error("no deletion had to wait for a save")
	}
}

// deletions counts those of a plan.
func deletions(p *plan.Plan) int {
	n := 0
	for i := range p.Actions {
		if p.Actions[i].Verb == plan.DeleteSlice {
			n++
		}
	}
	return n
}
