package incremental

import (
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// TestRoomOfWhatGoesIsWaitedFor: a job that ended for one that needs more than comes free at once
// does not take its slice again while the rest is being deleted, to be ended for it again.
func TestRoomOfWhatGoesIsWaitedFor(t *testing.T) {
	pool := newPool("pool", "", 0)
	pool.Max.Slices, pool.Growth = 3, schema.GrowthOffer
	held := newJob("held", from("pool"), inBand(schema.BandProduction))
	low := newJob("low", from("pool"), inBand(schema.BandBatch))
	big := newJob("big", from("pool"), onSlices(2), inBand(schema.BandProduction))
	w := newWorld(t)
	w.deleteTakes = time.Minute
	w.accept(withPools(configuration(held, low), pool))
	w.settle(time.Minute)
	idle := ""
	for name, s := range w.doc.Slices {
		if !s.IdleSince.IsZero() {
			idle = name
		}
	}
	w.preempt(idle)
	w.step(pace)
	w.accept(withPools(configuration(held, low, big), pool))
	w.until(5*time.Minute, "running", func(*plan.Plan) bool { return w.job(big.Addr).Ready })
	if got := w.job(low.Addr); got.Yields != 1 || got.Attempt != 1 {
		t.Errorf("low yielded %d times and had %d attempts before the other one ran, want one of each", got.Yields, got.Attempt)
	}
}

// TestAnUnrecordedSliceCountsForItsReservation: a slice that a controller asked for, without living to record
// it, is taken up by its reservation, or is there until it is confirmed that it may go. Beside it the reservation does
// not grow beyond its max.
func TestAnUnrecordedSliceCountsForItsReservation(t *testing.T) {
	for name, phase := range map[string]schema.SlicePhase{"one that can be taken up": schema.SliceReady, "one that is dead": schema.SliceDead} {
		t.Run(name, func(t *testing.T) { unrecordedCounts(t, phase) })
	}
}

func unrecordedCounts(t *testing.T, phase schema.SlicePhase) {
	pool := newPool("pool", "", 1)
	pool.Max.Slices = 2
	a, big := newJob("a", from("pool")), newJob("big", from("pool"))
	w := newWorld(t)
	w.accept(withPools(configuration(a), pool))
	w.settle(time.Minute)
	spec := plan.PoolSlice(w.doc.Stack(), &pool, 5)
	w.slices[spec.Name] = &simSlice{spec: spec, phase: phase, createdAt: w.now, hosts: []*simHost{{}}}
	w.accept(withPools(configuration(a, big), pool))
	w.until(10*time.Minute, "running", func(*plan.Plan) bool {
		of := 0
		for _, s := range w.slices {
			if s.spec.Owner == pool.Addr {
				of++
			}
		}
		if of > 2 {
			t.Fatalf("there are %d slices of a reservation that may have 2\n%s", of, w.describe())
		}
		return w.job(big.Addr).Ready
	})
	if took := slices.Contains(w.job(big.Addr).Slices, spec.Name); took != (phase == schema.SliceReady) {
		t.Errorf("the job runs on the slice that was found: %t, want it unless that is dead", took)
	}
}
