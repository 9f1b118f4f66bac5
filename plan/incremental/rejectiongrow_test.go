package incremental

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// A refused change of a reservation changes nothing of it: it still grows as far as
// what is recorded lets it, and no further.
func TestRefusedChangeLeavesAReservationItsGrowth(t *testing.T) {
	pool := hostPool(3)
	pool.Min.Slices = 1
	pool.Lifecycle.PreventDestroy = true
	less := pool
	less.Min.CPU, less.Max.CPU = 8, 8 // other machines, which would destroy those that are there
	less.Max.Slices = 1
	a, b := newJob("a", packed("pool", 4, 1)), newJob("b", packed("pool", 4, 1))
	c, d := newJob("c", packed("pool", 4, 1)), newJob("d", packed("pool", 4, 1))
	w := newWorld(t)
	w.accept(withPools(configuration(a, b), pool))
	w.settle(time.Minute)
	w.accept(withPools(configuration(a, b, c, d), less))
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(c.Addr).Ready })
	w.run(30 * time.Second)
	w.wantReason(d.Addr, "no room for 4 CPU")
	if got := w.doc.Resources[pool.Addr].Reservation.Max.Slices; got != 3 {
		t.Errorf("recorded max: got %d, want 3", got)
	}
	if j := w.job(a.Addr); j.Attempt != 1 || j.Status != schema.JobRunning {
		t.Errorf("job.a is %s in attempt %d, want running in its first", j.Status, j.Attempt)
	}
}
