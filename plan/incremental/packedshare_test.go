package incremental

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// TestAPackedTaskHasTheShareThatWasAssigned: a packed task was placed with one share, and placed again with
// a larger one under the same name; the controller died before it saved that, and the job has
// its former size again. Until the host has cleared the larger one away, no other job has its room.
func TestAPackedTaskHasTheShareThatWasAssigned(t *testing.T) {
	a, b := jobAddr("a"), jobAddr("b")
	sized := func(cpu float64) schema.Job { return newJob("a", packed("pool", cpu, 1)) }
	w := newWorld(t)
	pool := hostPool(1)
	w.accept(withPools(configuration(sized(4)), pool))
	w.until(time.Minute, "assigned", func(*plan.Plan) bool {
		s := w.doc.Slices[w.sliceOf(a, 0)]
		return s != nil && len(w.assignments[s.Spec.On].PackedTasks) > 0
	})
	name, small := w.sliceOf(a, 0), sized(1)
	digest, err := schema.DigestOf(&small)
	if err != nil {
		t.Fatal(err)
	}
	j, s := *w.doc.Jobs[a], *w.doc.Slices[name]
	j.Spec, j.Digest = &small, digest
	s.Spec.CPU = 1
	w.saved = w.doc.Clone()
	w.saved.Jobs[a], w.saved.Slices[name] = &j, &state.Slice{Spec: s.Spec}
	w.crash()
	w.accept(withPools(configuration(small, newJob("b", packed("pool", 3, 1))), pool)) // each step looks for hosts with more than they hold
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(a).Ready && w.job(b).Ready })
	if got := w.doc.Slices[w.sliceOf(a, 0)].Spec.CPU; got != 1 {
		t.Errorf("a runs with %g CPU, want 1", got)
	}
}
