package incremental

import (
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/schedule"
	"github.com/fray-ml/fray/schema"
)

func TestSemantics12HigherBandEndsLowerOnes(t *testing.T) {
	batch, prod := jobAddr("batch"), jobAddr("prod")
	w := newWorld(t)
	w.accept(limited(configuration(newJob("batch", inBand(schema.BandBatch), preemptions(0))), 1))
	w.settle(time.Minute)
	w.exits(prod, program{runs: 30 * time.Second})
	w.accept(limited(configuration(newJob("batch", inBand(schema.BandBatch), preemptions(0)), newJob("prod", inBand(schema.BandProduction))), 1))
	w.until(time.Minute, "asked to yield", func(*plan.Plan) bool { return !w.job(batch).YieldsTo.IsZero() })
	w.wantReason(prod, "job.batch makes room for it")
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(prod).Ready })
	b := w.job(batch)
	first := b.Attempts[0]
	if first.Outcome != schema.TaskPreempted || first.Reason != "yields to job.prod (band production)" {
		t.Errorf("attempt 1 of batch: got %s, %q", first.Outcome, first.Reason)
	}
	if b.Failures+b.Preemptions != 0 || b.Yields != 1 || b.Status.Ended() {
		t.Errorf("batch: got %d failures, %d preemptions, %d yields, %s; want 0, 0, 1, not ended", b.Failures, b.Preemptions, b.Yields, b.Status)
	}
	w.settle(5 * time.Minute)
	w.wantJob(batch, schema.JobRunning, 2, 0, 0)
}

func TestSemantics12WhoIsEnded(t *testing.T) {
	prod, interactive, batch := inBand(schema.BandProduction), inBand(schema.BandInteractive), inBand(schema.BandBatch)
	for name, c := range map[string]struct {
		held  []schema.Job
		limit int
		ages  time.Duration
		comes schema.Job
		want  []string // who yields
	}{
		"none if there is room":            {[]schema.Job{newJob("a", batch)}, 2, time.Hour, newJob("z", prod), nil},
		"never the same band":              {[]schema.Job{newJob("a", interactive)}, 1, time.Hour, newJob("z", interactive, func(j *schema.Job) { j.Priority = 9 }), nil},
		"never a higher one":               {[]schema.Job{newJob("a", prod)}, 1, time.Hour, newJob("z", batch), nil},
		"production ends batch at once":    {[]schema.Job{newJob("a", batch)}, 1, time.Second, newJob("z", prod), []string{"a"}},
		"interactive leaves it its lease":  {[]schema.Job{newJob("a", batch)}, 1, time.Minute, newJob("z", interactive), nil},
		"and ends it after":                {[]schema.Job{newJob("a", batch)}, 1, schedule.MinLease, newJob("z", interactive), []string{"a"}},
		"production leaves interactive it": {[]schema.Job{newJob("a", interactive)}, 1, time.Minute, newJob("z", prod), nil},
		"the fewest chips":                 {[]schema.Job{newJob("a", batch, onTPU("v5litepod-8")), newJob("b", batch, onTPU("v5litepod-4"))}, 2, time.Hour, newJob("z", prod), []string{"b"}},
		"whole gangs":                      {[]schema.Job{newJob("a", batch, onSlices(2))}, 2, time.Hour, newJob("z", prod), []string{"a"}},
		"whole groups":                     {[]schema.Job{newJob("a", batch, inGroup("g")), newJob("b", batch, inGroup("g"))}, 2, time.Hour, newJob("z", prod), []string{"a", "b"}},
		"a group stands where its best does": {[]schema.Job{newJob("a", batch, inGroup("g")), newJob("b", interactive, inGroup("g"))},
			2, time.Hour, newJob("z", interactive), nil},
		"the least time run of as many": {[]schema.Job{newJob("a", batch, onTPU("v5litepod-4")), newJob("b", batch, onTPU("v5litepod-4")), newJob("c", batch, onTPU("v5litepod-4"), onSlices(2))}, 4, time.Hour, newJob("z", prod, onSlices(2)), []string{"c"}},
		"none if no set suffices":       {[]schema.Job{newJob("a", batch), newJob("b", prod)}, 2, time.Hour, newJob("z", prod, onSlices(2)), nil},
		"of lower bands the cheapest":   {[]schema.Job{newJob("a", batch, onTPU("v5litepod-8")), newJob("b", interactive, onTPU("v5litepod-4"))}, 2, time.Hour, newJob("z", prod), []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.accept(limited(configuration(c.held...), c.limit))
			w.settle(time.Minute)
			w.pass(c.ages - w.now.Sub(w.startedAt(c.held[0].Addr)))
			w.accept(limited(configuration(append(slices.Clone(c.held), c.comes)...), c.limit))
			w.step(500 * time.Millisecond)
			w.step(500 * time.Millisecond)
			var got []string
			for _, j := range c.held {
				if !w.job(j.Addr).YieldsTo.IsZero() {
					got = append(got, j.Addr.Name)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("yield: got %v, want %v\n%s", got, c.want, w.describe())
			}
		})
	}
}

// What was given up for one goes to no other job.
func TestSemantics12FreedCapacityIsKept(t *testing.T) {
	batch := inBand(schema.BandBatch)
	prod := newJob("z", inBand(schema.BandProduction), onSlices(3))
	held := []schema.Job{newJob("a", batch, instance(0)), newJob("a", batch, instance(1)), newJob("a", batch, instance(2))}
	w := newWorld(t)
	w.accept(limited(configuration(held...), 4))
	w.settle(time.Minute)
	w.deleteTakes = time.Minute
	small := newJob("b", inBand(schema.BandInteractive))
	w.accept(limited(configuration(append(slices.Clone(held), prod, small)...), 4))
	w.until(10*time.Minute, "running", func(*plan.Plan) bool { return w.job(prod.Addr).Ready })
	if at := w.startedAt(small.Addr); !at.IsZero() {
		t.Errorf("job.b started at %s, before whom room was made for\n%s", at, w.describe())
	}
	yields := 0
	for _, j := range held {
		yields += w.job(j.Addr).Yields
	}
	if yields != 2 {
		t.Errorf("%d jobs were ended, want 2\n%s", yields, w.describe())
	}
}

func TestSemantics12PoolIsMadeRoomIn(t *testing.T) {
	w := newWorld(t)
	held := newJob("a", inBand(schema.BandBatch), from("p"), onSlices(2))
	w.accept(withPools(configuration(held), newPool("p", "", 2)))
	w.settle(time.Minute)
	made := len(w.slices)
	prod := newJob("z", inBand(schema.BandProduction), from("p"))
	w.accept(withPools(configuration(held, prod), newPool("p", "", 2)))
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(prod.Addr).Ready })
	if len(w.slices) != made {
		t.Errorf("there are %d slices, want the %d of before", len(w.slices), made)
	}
	w.wantReason(held.Addr, "needs 2 of its 2 slices at once, 1 free")
}

func TestSemantics08WhoIsDoneDoesNotYield(t *testing.T) {
	batch := jobAddr("batch")
	w := newWorld(t)
	w.stopTakes = 5 * time.Second
	w.exits(batch, program{runs: 10 * time.Second})
	held := newJob("batch", inBand(schema.BandBatch))
	w.accept(limited(configuration(held), 1))
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(batch).Ready })
	w.run(7 * time.Second)
	w.accept(limited(configuration(held, newJob("z", inBand(schema.BandProduction))), 1))
	w.settle(time.Minute)
	if got := w.job(batch); got.Status != schema.JobSucceeded || got.Attempt != 1 {
		t.Errorf("got %s after attempt %d, want it to have succeeded at the first\n%s", got.Status, got.Attempt, w.describe())
	}
}

func TestSemantics12QuotaIsMadeRoomIn(t *testing.T) {
	w := newWorld(t)
	w.quota = 3 // one of them is another stack's
	held := []schema.Job{newJob("a", inCloud, inBand(schema.BandBatch)), newJob("b", inCloud, inBand(schema.BandInteractive))}
	w.accept(zoned(configuration(held...), west))
	w.settle(5 * time.Minute)
	prod := newJob("z", inCloud, inBand(schema.BandProduction))
	w.accept(zoned(configuration(append(slices.Clone(held), prod)...), west))
	w.until(5*time.Minute, "running", func(*plan.Plan) bool { return w.job(prod.Addr).Ready })
	if a, b := w.job(held[0].Addr), w.job(held[1].Addr); a.Yields != 1 || b.Yields != 0 || a.Failures+a.Preemptions != 0 {
		t.Errorf("a yielded %d times, b %d times, want once and never", a.Yields, b.Yields)
	}
}
