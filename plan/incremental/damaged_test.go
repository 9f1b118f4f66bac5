package incremental

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// TestNothingBeginsWhereAnAssignmentCannotBeRead: hosts may have read an assignment before it was
// damaged, and be about to begin what it says. A slice is not idle by that: its hosts are told to run
// nothing, and have confirmed it, before anything else begins there.
func TestNothingBeginsWhereAnAssignmentCannotBeRead(t *testing.T) {
	a, b := jobAddr("a"), jobAddr("b")
	for name, take := range map[string]jobOption{
		"a slice of a reservation": from("pool"),
		"a part of one":            packed("pool", 1, 1),
		"slices of its own":        func(*schema.Job) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.stopTakes = 3 * time.Second
			pool := hostPool(1)
			w.accept(withPools(configuration(newJob("a", take)), pool))
			w.until(time.Minute, "assigned", func(*plan.Plan) bool { return len(w.runs(a)) > 0 })
			w.saved = w.doc.Clone() // the slice is the job's in the state, its attempt is not
			j := *w.saved.Jobs[a]
			j.Attempt, j.Attempts = 0, nil
			w.saved.Jobs[a] = &j
			was := w.runs(a)[0]
			w.damaged = map[string]state.Generation{was: w.assignments[was].Object}
			w.crash()
			p := w.step(pace)
			for _, action := range p.Actions {
				if action.Verb == plan.Assign && action.Assignment.Run != nil {
					t.Fatalf("attempt %d of %s begins on slice %s, of which it is not known what it is to run", action.Assignment.Run.Attempt, action.Assignment.Run.Job, action.Slice.Name)
				}
			}
			w.wantReason(a, "what slice "+was+" is to run cannot be read")
			clear(w.oracle.starts) // nothing is left that tells the number of the attempt that was begun
			w.until(time.Minute, "running", func(*plan.Plan) bool { clear(w.oracle.starts); return w.job(a).Ready })
			w.accept(withPools(configuration(newJob("a", take), newJob("b")), pool))
			w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(b).Ready })
		})
	}
}

// runs are the slices to which a run of a job is assigned.
func (w *world) runs(addr schema.Address) []string {
	var names []string
	for name, assigned := range w.assignments {
		if assigned.Run != nil && assigned.Run.Job == addr {
			names = append(names, name)
		}
	}
	return names
}
