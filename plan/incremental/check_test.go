package incremental

import (
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// A job that a Planner takes for ended, and whose task has failed, is decided about again
// within a minute, and is reported.
func TestCheckFindsWhatAPlannerMisses(t *testing.T) {
	for _, drawn := range []bool{false, true} {
		b := sharedBench(t, 32)
		for range 3 { // until its jobs are clean
			b.step(nil)
		}
		p := &b.planner
		i := slices.IndexFunc(p.desired.Jobs, func(j schema.Job) bool { return (j.Resources.Reservation != "") == drawn && j.Namespace != "full" })
		addr := p.desired.Jobs[i].Addr
		slice := b.doc.Jobs[addr].Slices[0]
		p.focus.dropSteady(p.seen[i])
		p.conditions[i], p.seen[i] = done, nil // as a defect would have it
		b.report(slice, func(h *plan.Host) {
			task := *h.Task
			task.State, h.Task = schema.TaskFailed, &task
		})
		changed, reported := map[string]bool{slice: true}, 0
		for end := b.now.Add(checkWithin + 2*time.Second); b.now.Before(end); {
			made, _ := b.step(changed)
			if changed = b.carryOut(made); len(p.Differing()) > 0 {
				reported++
				if got := p.Differing(); !slices.Equal(got, []schema.Address{addr}) {
					t.Errorf("got %v, want %s alone", got, addr)
				}
			}
		}
		if reported != 1 || b.doc.Jobs[addr].Attempt != 2 {
			t.Errorf("%s, of a reservation: %t: it was reported %d times and is in attempt %d, want once and the second", addr, drawn, reported, b.doc.Jobs[addr].Attempt)
		}
	}
}
