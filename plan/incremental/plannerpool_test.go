package incremental

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
)

// drawNetworkWithPool makes a network of jobs beside some that draw on a reservation, whole
// slices or parts of hosts.
func drawNetworkWithPool(t *rapid.T) schema.Desired {
	jobs := drawNetwork(t).Jobs
	for i := range rapid.IntRange(1, 4).Draw(t, "drawing") {
		j := newJob(fmt.Sprintf("p%d", i), from("pool"), failures(schema.Unlimited), preemptions(schema.Unlimited))
		if rapid.Bool().Draw(t, "packed") {
			packed("pool", rapid.SampledFrom([]float64{0.5, 1, 2}).Draw(t, "cpu"), 1)(&j)
		}
		j.Band = drawBand(t)
		jobs = append(jobs, j)
	}
	pool := cpuPool("pool", 4, rapid.IntRange(2, 4).Draw(t, "max"))
	pool.Min.Slices -= rapid.IntRange(0, 1).Draw(t, "less")
	pool.IdleTimeout = schema.Duration(rapid.SampledFrom([]int{0, 3, 30}).Draw(t, "pool idle")) * schema.Duration(time.Second)
	for { // what never fits is refused
		desired := drawSpaces(t, withPools(configuration(jobs...), pool))
		if len(capacity.Check(&desired)) == 0 {
			return desired
		}
		jobs = slices.Clone(jobs[:len(jobs)-1])
	}
}

// A stack with a reservation is planned in parts, too: the jobs that draw on it are decided
// about in each plan, the others are passed over as without it.
func TestPlannerWithReservations(t *testing.T) {
	parts, steps, passed := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.wayward = true
		w.program = drawPrograms(t)
		w.accept(drawNetworkWithPool(t))
		for range rapid.IntRange(0, 40).Draw(t, "faults") {
			if rapid.IntRange(0, 3).Draw(t, "calm") == 0 {
				fault(t, w)
			}
			w.step(time.Duration(rapid.SampledFrom([]int{40, 500, 3000}).Draw(t, "ms")) * time.Millisecond)
			steps++
			if p := w.planner; p.last == w.doc && len(p.dirty) < len(p.conditions) {
				passed++
			}
		}
		parts += w.oracle.parts
	})
	if parts < steps/3 || passed < steps/4 {
		t.Errorf("%d of %d steps were plans in parts, %d passed jobs over; the test shows little", parts, steps, passed)
	}
}
