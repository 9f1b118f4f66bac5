package incremental

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// TestWaitForALeftoverEndsWithIt: a job that waits for another one, and of which a slice is left that is
// not recorded, waits for that slice no longer than it is listed. Each step compares a Planner with Diff.
func TestWaitForALeftoverEndsWithIt(t *testing.T) {
	w := newWorld(t)
	w.accept(configuration(newJob("a"), newJob("b", after(jobAddr("a")))))
	w.run(5 * time.Second)
	spec := plan.UnnamedSlice(w.doc.Stack(), w.job(jobAddr("b")).Spec, 0)
	spec.Name = "b-0-leftover"
	w.slices[spec.Name] = &simSlice{spec: spec, phase: schema.SliceReady, createdAt: w.now, hosts: []*simHost{{}}}
	w.step(pace)
	w.wantWaits(jobAddr("b"), "waits for job.a", "nothing is recorded of it")
	w.vanish(spec.Name)
	w.step(pace)
	w.wantWaits(jobAddr("b"), "waits for job.a")
	for _, p := range w.last.Pending {
		if p.Addr == jobAddr("b") && len(p.Reasons) > 1 {
			t.Errorf("b waits because %q, want no word of the slice that has gone", p.Reasons)
		}
	}
}
