package incremental

import (
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
