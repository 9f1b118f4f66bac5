package incremental

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/plan/schedule"
	"github.com/fray-ml/fray/schema"
)

// TestReservedRoomIsNoRoomForOthers: room that is held on a host for a job ahead, before it has
// come free there, leaves less than nothing of that host's memory, or disk. That is not as if the
// reservation did not say how much there is.
func TestReservedRoomIsNoRoomForOthers(t *testing.T) {
	for name, takes := range map[string]func(gib schema.Bytes) jobOption{
		"memory": func(gib schema.Bytes) jobOption { return withMemory(gib << 30) },
		"disk":   func(gib schema.Bytes) jobOption { return withDisk(10 * gib << 30) },
	} {
		t.Run(name, func(t *testing.T) {
			first, ahead, behind := jobAddr("first"), jobAddr("ahead"), jobAddr("behind")
			w := newWorld(t)
			desired := withPools(configuration(newJob("first", packed("pool", 1, 1), takes(6))), hostPool(1))
			w.exits(first, program{runs: time.Hour})
			w.accept(desired)
			w.run(20 * time.Second)
			w.accept(withPools(configuration(
				newJob("ahead", packed("pool", 0.5, 1), takes(5), inBand(schema.BandInteractive)),
				newJob("behind", packed("pool", 0.5, 1), takes(7), inBand(schema.BandBatch)),
				desired.Jobs[0],
			), hostPool(1)))
			for range 4 { // each step's Next must rest
				w.pass(schedule.Patience)
				w.wantWaits(ahead, "too little "+name+" left")
				w.wantWaits(behind, "no room for 0.5 CPU")
			}
		})
	}
}
