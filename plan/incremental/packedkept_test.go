package incremental

import (
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/schedule"
	"github.com/fray-ml/fray/schema"
)

// Of all hosts those are kept that lack the least already: what works there for
// long would be waited for in vain while others have what comes free elsewhere.
func TestNearestRoomIsKept(t *testing.T) {
	for name, big := range map[string]schema.Job{
		"for a packed task": newJob("big", packed("pool", 4, 1)),
		"for a whole slice": newJob("big", from("pool")),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			long := newJob("long", packed("pool", 1, 4)) // on the first host
			w.exits(long.Addr, program{runs: 24 * time.Hour})
			w.accept(withPools(configuration(long), hostPool(2)))
			w.run(10 * time.Second)
			jobs := append([]schema.Job{long}, w.smallPacked(60)...)
			w.accept(withPools(configuration(jobs[:5]...), hostPool(2)))
			w.run(20 * time.Second)
			w.accept(withPools(configuration(append(slices.Clone(jobs), big)...), hostPool(2)))
			w.pass(schedule.Patience + time.Minute)
			w.until(10*time.Minute, "running", func(*plan.Plan) bool { return w.job(big.Addr).Ready })
		})
	}
}

// Room on hosts is reserved against units that wait, not against those for which what runs there
// may wait: both would wait for ever.
func TestRoomOnHostsIsNotKeptFromChildrenOfWhatRuns(t *testing.T) {
	pool := hostPool(2)
	for name, c := range map[string]struct {
		big, child schema.Job
		others     []schema.Job
	}{
		"a packed task": {
			newJob("big", packed("pool", 4, 2)), launchedJob("child", packed("pool", 1, 1)), nil,
		},
		"a packed task, behind others that ask for as much": {
			newJob("big", packed("pool", 4, 2)), launchedJob("child", packed("pool", 1, 1)), []schema.Job{newJob("other", packed("pool", 1, 1))},
		},
		"a whole slice": {
			newJob("big", packed("pool", 4, 2)), launchedJob("child", from("pool")), nil,
		},
		"a packed task where a whole slice is kept": {
			newJob("big", from("pool"), onSlices(2)), launchedJob("child", packed("pool", 1, 1)), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			desired := func(jobs ...schema.Job) schema.Desired {
				return withSpaces(withPools(configuration(jobs...), pool), newSpace("default", nil))
			}
			w := newWorld(t)
			parent := newJob("parent", packed("pool", 1, 1))
			w.accept(desired(parent))
			w.settle(time.Minute)
			w.accept(desired(parent, c.big))
			w.pass(schedule.Patience + time.Minute)
			w.accept(desired(append([]schema.Job{parent, c.big}, c.others...)...))
			w.run(2 * time.Second)
			for _, other := range c.others {
				w.wantReason(other.Addr, "room kept for job.big")
			}
			w.mustLaunch(w.job(parent.Addr).ID, desired(c.child).Jobs...)
			w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(c.child.Addr).Ready })
			for _, other := range c.others { // it is kept again, from all else
				w.wantReason(other.Addr, "room kept for job.big")
			}
		})
	}
}

// No job is ended for room that another one has been given at the same moment.
func TestAbsentIsEndedForRoomThatIsTaken(t *testing.T) {
	prod, batch := inBand(schema.BandProduction), inBand(schema.BandBatch)
	w := newWorld(t)
	held := newJob("b", packed("pool", 4, 1), batch)
	w.accept(withPools(configuration(held), hostPool(2)))
	w.settle(time.Minute)
	first := newJob("f", packed("pool", 1, 3), onPort(80), prod, ahead(3)) // fits nowhere, and looks at the hosts
	whole := newJob("w", from("pool"), prod, ahead(2))                     // takes the free one
	last := newJob("z", packed("pool", 4, 2), prod, ahead(1))              // would need both
	w.accept(withPools(configuration(held, first, whole, last), hostPool(2)))
	w.run(30 * time.Second)
	if j := w.job(held.Addr); j.Yields > 0 || !j.YieldsTo.IsZero() {
		t.Errorf("job.b was ended, and job.z cannot be placed\n%s", w.describe())
	}
	w.wantJob(whole.Addr, schema.JobRunning, 1, 0, 0)
}

func ahead(priority int) jobOption { return func(j *schema.Job) { j.Priority = priority } }

// Who cannot be helped for a reason of its own is no reason not to help others.
func TestHopeIsGivenUpOnlyForWhatIsInVain(t *testing.T) {
	prod, batch := inBand(schema.BandProduction), inBand(schema.BandBatch)
	t.Run("by a namespace at its limit", func(t *testing.T) {
		w := newWorld(t)
		spaces := []schema.Namespace{newSpace("full", func(n *schema.Namespace) { n.MaxCPU, n.Weight = 1, 10 }), newSpace("wide", nil)}
		held := []schema.Job{newJob("a", inSpace("full"), prod), newJob("b", inSpace("wide"), prod), newJob("c", inSpace("wide"), batch)}
		w.accept(limited(withSpaces(configuration(held...), spaces...), 3))
		w.settle(time.Minute)
		x, y := newJob("x", inSpace("full"), prod), newJob("y", inSpace("wide"), prod)
		w.accept(limited(withSpaces(configuration(append(held, x, y)...), spaces...), 3))
		w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(y.Addr).Ready })
		w.wantReason(x.Addr, "namespace.full: needs 1 more core")
	})
	t.Run("by the child of who would be ended", func(t *testing.T) {
		w := newWorld(t)
		parent := newJob("parent", batch)
		space := newSpace("default", nil)
		w.accept(limited(withSpaces(configuration(parent), space), 1))
		w.settle(time.Minute)
		w.mustLaunch(w.job(parent.Addr).ID, launchedJob("child", prod))
		w.run(2 * time.Second)
		z := newJob("z", prod)
		w.accept(limited(withSpaces(configuration(parent, z), space), 1))
		w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(z.Addr).Ready })
	})
}

// Where a reservation could grow and its provider has no room, those of lower bands
// that have it now make some.
func TestSemantics12ReservationThatCannotGrow(t *testing.T) {
	for name, shape := range map[string][2]jobOption{
		"packed tasks": {packed("pool", 4, 1), packed("pool", 2, 1)},
		"whole slices": {from("pool"), from("pool")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			pool := hostPool(1)
			pool.Max.Slices = 2
			held, comes := newJob("b", shape[0], inBand(schema.BandBatch)), newJob("z", shape[1], inBand(schema.BandProduction))
			w.accept(limited(withPools(configuration(held), pool), 1))
			w.settle(time.Minute)
			w.accept(limited(withPools(configuration(held, comes), pool), 1))
			w.run(time.Second)
			w.wantReason(comes.Addr, "job.b makes room for it")
			w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(comes.Addr).Ready })
			w.run(time.Minute)
			if j := w.job(held.Addr); j.Yields != 1 || j.Running() {
				t.Errorf("job.b yielded %d times, want once", j.Yields)
			}
		})
	}
}

// A slice that is being deleted makes no room: a job that waits for it to be made anew is
// not made to give it up for another that would wait as well.
func TestAbsentGivesUpWhatDies(t *testing.T) {
	w := newWorld(t)
	w.bootTakes = 10 * time.Minute
	pool := hostPool(1)
	pool.Min.Slices, pool.Max.Slices = 0, 3
	wide := func(n int) jobOption { return func(j *schema.Job) { j.Resources.Slices = n } }
	waits, comes := newJob("b", from("pool"), wide(2), inBand(schema.BandBatch)), newJob("z", from("pool"), wide(3), inBand(schema.BandProduction))
	w.accept(withPools(configuration(waits), pool))
	w.run(time.Minute)
	held := slices.Clone(w.job(waits.Addr).Slices)
	if len(held) != 2 || w.job(waits.Addr).Running() {
		t.Fatalf("job.b has %v, want two slices that it waits for", held)
	}
	dying := w.slices[held[0]]
	dying.phase, dying.changesAt = schema.SliceDeleting, w.now.Add(time.Minute)
	w.accept(withPools(configuration(waits, comes), pool))
	w.run(10 * time.Second)
	if got := w.job(waits.Addr).Slices; !slices.Equal(got, held) {
		t.Errorf("job.b has %v, want %v as before", got, held)
	}
	w.until(5*time.Minute, "given its slices", func(*plan.Plan) bool { return len(w.job(comes.Addr).Slices) == 3 })
}
