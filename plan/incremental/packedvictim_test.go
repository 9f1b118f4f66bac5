package incremental

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/schedule"
	"github.com/fray-ml/fray/schema"
)

func withDisk(b schema.Bytes) jobOption {
	return func(j *schema.Job) { j.Resources.Disk = b }
}

// yielders are the names of those of some jobs that are told to make room.
func (w *world) yielders(jobs []schema.Job) []string {
	var names []string
	for i := range jobs {
		if j := w.job(jobs[i].Addr); !j.YieldsTo.IsZero() {
			names = append(names, jobs[i].Addr.Name)
		}
	}
	return names
}

// hostPool is a reservation of machines with 4 cores, 8 GiB of memory and 100 GiB of disk.
func hostPool(n int) schema.Reservation {
	pool := cpuPool("pool", 4, n)
	pool.Min.Memory, pool.Min.Disk = 8<<30, 100<<30
	pool.Max = pool.Min
	return pool
}

// TestSemantics12PackedMakeRoom: who is ended on the hosts of a reservation, for whom.
func TestSemantics12PackedMakeRoom(t *testing.T) {
	prod, interactive, batch := inBand(schema.BandProduction), inBand(schema.BandInteractive), inBand(schema.BandBatch)
	part := func(cpu float64, tasks int) jobOption { return packed("pool", cpu, tasks) }
	for name, c := range map[string]struct {
		held  []schema.Job // first ones
		ages  time.Duration
		later []schema.Job // that come a minute before
		hosts int
		comes schema.Job
		want  []string
	}{
		"batch fills all hosts": {
			[]schema.Job{newJob("a", part(4, 1), batch), newJob("b", part(4, 1), batch)}, time.Hour, nil, 2,
			newJob("z", part(4, 1), prod), []string{"a"},
		},
		"none if there is room": {
			[]schema.Job{newJob("a", part(3, 1), batch), newJob("b", part(4, 1), batch)}, time.Hour, nil, 2,
			newJob("z", part(1, 1), prod), nil,
		},
		"never the same band": {
			[]schema.Job{newJob("a", part(4, 1), interactive), newJob("b", part(4, 1), prod)}, time.Hour, nil, 2,
			newJob("z", part(1, 1), interactive), nil,
		},
		"nor a higher one": {
			[]schema.Job{newJob("a", part(4, 1), interactive), newJob("b", part(4, 1), prod)}, time.Hour, nil, 2,
			newJob("z", part(1, 1), batch), nil,
		},
		"none younger than the minimum lease": {
			[]schema.Job{newJob("a", part(4, 1), interactive)}, schedule.MinLease - time.Minute, nil, 1,
			newJob("z", part(1, 1), prod), nil,
		},
		"and after it": {
			[]schema.Job{newJob("a", part(4, 1), interactive)}, schedule.MinLease, nil, 1,
			newJob("z", part(1, 1), prod), []string{"a"},
		},
		"the younger of as large ones": {
			[]schema.Job{newJob("a", part(4, 1), batch)}, time.Hour, []schema.Job{newJob("b", part(4, 1), batch)}, 2,
			newJob("z", part(2, 1), prod), []string{"b"},
		},
		"the fewest cores that suffice": {
			[]schema.Job{newJob("a", part(4, 1), batch), newJob("b", part(2, 1), batch), newJob("c", part(1, 1), batch), newJob("d", part(1, 1), batch)}, time.Hour, nil, 2,
			newJob("z", part(2, 1), prod), []string{"b"},
		},
		"on one host, not as much on several": {
			[]schema.Job{newJob("a", part(3, 1), batch), newJob("b", part(2, 1), batch)}, time.Hour, nil, 2,
			newJob("z", part(3, 1), prod), []string{"b"},
		},
		"each task of the gang needs a host": {
			[]schema.Job{newJob("a", part(4, 1), batch), newJob("b", part(4, 1), batch), newJob("c", part(4, 1), batch)}, time.Hour, nil, 3,
			newJob("z", part(3, 2), prod), []string{"a", "b"},
		},
		"none if the gang does not fit anyway": {
			[]schema.Job{newJob("a", part(4, 1), batch), newJob("b", part(4, 1), prod)}, time.Hour, nil, 2,
			newJob("z", part(3, 2), prod), nil,
		},
		"a victim's gang ends whole": {
			[]schema.Job{newJob("a", part(3, 2), batch)}, time.Hour, nil, 2,
			newJob("z", part(2, 1), prod), []string{"a"},
		},
		"one gang rather than two that ran as long": {
			[]schema.Job{newJob("a", part(2, 2), batch), newJob("b", part(2, 1), batch), newJob("c", part(2, 1), batch)}, time.Hour, nil, 2,
			newJob("z", part(2, 2), prod), []string{"a"},
		},
		"memory": {
			[]schema.Job{newJob("a", part(1, 1), withMemory(6<<30), batch), newJob("b", part(1, 1), withMemory(2<<30), batch)}, time.Hour, nil, 1,
			newJob("z", part(1, 1), withMemory(5<<30), prod), []string{"a"},
		},
		"disk": {
			[]schema.Job{newJob("a", part(1, 1), withDisk(80<<30), batch), newJob("b", part(1, 1), withDisk(10<<30), batch)}, time.Hour, nil, 1,
			newJob("z", part(1, 1), withDisk(50<<30), prod), []string{"a"},
		},
		"a port": {
			[]schema.Job{newJob("a", part(1, 1), onPort(80), batch), newJob("b", part(1, 1), onPort(81), batch)}, time.Hour, nil, 1,
			newJob("z", part(1, 1), onPort(81), prod), []string{"b"},
		},
		"a whole slice's holder, where it costs less": {
			[]schema.Job{newJob("a", part(4, 1), batch)}, time.Hour, []schema.Job{newJob("b", from("pool"), batch, cores(4))}, 2,
			newJob("z", part(2, 1), prod), []string{"b"},
		},
		"a packed task, where it costs less than a whole slice's holder": {
			[]schema.Job{newJob("a", from("pool"), batch, cores(4))}, time.Hour, []schema.Job{newJob("b", part(4, 1), batch)}, 2,
			newJob("z", part(2, 1), prod), []string{"b"},
		},
		"all packed tasks of a slice for one that draws it whole": {
			[]schema.Job{newJob("a", part(2, 1), batch), newJob("b", part(2, 1), batch), newJob("c", part(3, 1), prod)}, time.Hour, nil, 2,
			newJob("z", from("pool"), prod), []string{"a", "b"},
		},
		"three packed tasks of one slice are not three slices": {
			[]schema.Job{newJob("a", part(1, 3), batch), newJob("b", from("pool"), prod)}, time.Hour, nil, 2,
			newJob("z", from("pool"), onSlices(2), prod), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.accept(withPools(configuration(c.held...), hostPool(c.hosts)))
			w.settle(time.Minute)
			held := slices.Concat(c.held, c.later)
			if len(c.later) > 0 {
				w.pass(c.ages - w.now.Sub(w.startedAt(c.held[0].Addr)) - time.Minute)
				w.accept(withPools(configuration(held...), hostPool(c.hosts)))
				w.settle(time.Minute)
			}
			w.pass(c.ages - w.now.Sub(w.startedAt(c.held[0].Addr)))
			w.accept(withPools(configuration(append(slices.Clone(held), c.comes)...), hostPool(c.hosts)))
			w.step(500 * time.Millisecond)
			w.step(500 * time.Millisecond)
			if got := w.yielders(held); !slices.Equal(got, c.want) {
				t.Fatalf("yield: got %v, want %v\n%s", got, c.want, w.describe())
			}
			if len(c.want) > 0 {
				w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(c.comes.Addr).Ready })
			}
		})
	}
}

func cores(n float64) jobOption { return func(j *schema.Job) { j.Resources.CPU = n } }

// A victim is ended whole, says for whom, spends nothing, and goes on when there is
// room again; the one that waits says who makes room for it.
func TestSemantics12APackedTaskThatYieldedGoesOn(t *testing.T) {
	w := newWorld(t)
	gang := newJob("gang", packed("pool", 4, 2), inBand(schema.BandBatch), failures(0), preemptions(0))
	prod := newJob("z", packed("pool", 3, 1), inBand(schema.BandProduction))
	w.exits(prod.Addr, program{runs: 30 * time.Second})
	w.accept(withPools(configuration(gang), hostPool(2)))
	w.settle(time.Minute)
	w.stopTakes = 5 * time.Second
	w.accept(withPools(configuration(gang, prod), hostPool(2)))
	w.run(2 * time.Second)
	w.wantReason(prod.Addr, "of 2 hosts 2 with too little CPU left", "job.gang makes room for it")
	w.wantReason(gang.Addr, "yields to job.z (band production)")
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(prod.Addr).Ready })
	if live := w.liveTasks(gang.Addr); len(live) > 0 {
		t.Errorf("tasks of the gang that yielded live on %v", live)
	}
	w.wantReason(gang.Addr, "no room for 2 times 4 CPU")
	w.settle(5 * time.Minute)
	w.wantJob(prod.Addr, schema.JobSucceeded, 1, 0, 0)
	w.wantJob(gang.Addr, schema.JobRunning, 2, 0, 0)
	j := w.job(gang.Addr)
	if first := j.Attempts[0]; j.Yields != 1 || first.Outcome != schema.TaskPreempted || first.Reason != "yields to job.z (band production)" {
		t.Errorf("it yielded %d times, and its first attempt ended as %s: %q", j.Yields, first.Outcome, first.Reason)
	}
}

// Room that is made on a host goes to no other job, though others would fit while
// the rest of it is being made, and though they would fit afterwards.
func TestSemantics12RoomOnHostsIsKept(t *testing.T) {
	batch, interactive := inBand(schema.BandBatch), inBand(schema.BandInteractive)
	for name, c := range map[string]struct {
		comes, other schema.Job
		why          string
	}{
		"from packed tasks":         {newJob("z", packed("pool", 3, 2), inBand(schema.BandProduction)), newJob("b", packed("pool", 2, 1), interactive), "1 with room kept for job.z"},
		"from who draws it whole":   {newJob("z", packed("pool", 3, 2), inBand(schema.BandProduction)), newJob("b", from("pool"), interactive), "needs 1 of its 2 slices at once, 0 free"},
		"for one who draws it":      {newJob("z", from("pool"), onSlices(2), inBand(schema.BandProduction)), newJob("b", packed("pool", 1, 1), interactive), "2 with room kept for job.z"},
		"from others who draw them": {newJob("z", from("pool"), onSlices(2), inBand(schema.BandProduction)), newJob("b", from("pool"), interactive), "job.z"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			quick, slow := newJob("quick", packed("pool", 4, 1), batch), newJob("slow", packed("pool", 4, 1), batch)
			w.accept(withPools(configuration(quick, slow), hostPool(2)))
			w.settle(time.Minute)
			w.stopTakes = 20 * time.Second
			w.accept(withPools(configuration(quick, slow, c.comes, c.other), hostPool(2)))
			w.run(2 * time.Second)
			if got, want := w.yielders([]schema.Job{quick, slow}), []string{"quick", "slow"}; !slices.Equal(got, want) {
				t.Fatalf("yield: got %v, want %v", got, want)
			}
			w.stopNow(quick.Addr) // long before the other one
			w.run(5 * time.Second)
			w.wantReason(c.other.Addr, c.why)
			w.until(2*time.Minute, "running", func(*plan.Plan) bool { return w.job(c.comes.Addr).Ready })
			for _, j := range []schema.Job{quick, slow, c.other} {
				if got := w.job(j.Addr).Attempt; j.Addr == c.other.Addr && got > 0 || got > 1 {
					t.Errorf("%s had attempt %d before the one for whom room was made", j.Addr, got)
				}
			}
		})
	}
}

// stopNow has those of a job's tasks end at once that are told to stop.
func (w *world) stopNow(addr schema.Address) {
	for _, s := range w.slices {
		for _, h := range s.hosts {
			if h.live && h.task.Job == addr {
				h.stopsAt = w.now
			}
		}
	}
}

// A job that needs all of a host is overtaken by small ones for a while, and then
// no more.
func TestBigPackedIsNotOvertakenForEver(t *testing.T) {
	for name, big := range map[string]schema.Job{
		"a gang of packed tasks": newJob("big", packed("pool", 4, 2)),
		"a whole slice":          newJob("big", from("pool")),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			small := w.smallPacked(60)
			w.accept(withPools(configuration(small[:8]...), hostPool(2)))
			w.run(20 * time.Second)
			w.accept(withPools(configuration(append(slices.Clone(small), big)...), hostPool(2)))
			w.pass(schedule.Patience + time.Minute)
			if last := small[len(small)-1].Addr; !strings.Contains(w.whyOf(last), "kept for job.big") {
				t.Errorf("job.small waits since %q, want it to name for whom room is kept", w.whyOf(last))
			}
			w.until(10*time.Minute, "running", func(*plan.Plan) bool { return w.job(big.Addr).Ready })
		})
	}
}

// A unit that waits for services is waited for by none.
func TestRoomOnHostsIsNotKeptForEver(t *testing.T) {
	w := newWorld(t)
	service, big, small := newJob("s", packed("pool", 1, 1), asService), newJob("big", packed("pool", 4, 1)), newJob("small", packed("pool", 1, 1))
	w.accept(withPools(configuration(service), hostPool(1)))
	w.settle(time.Minute)
	w.accept(withPools(configuration(service, big), hostPool(1)))
	w.pass(schedule.Patience + time.Minute)
	w.accept(withPools(configuration(service, big, small), hostPool(1)))
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(small.Addr).Ready })
}
