package incremental

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/schedule"
	"github.com/fray-ml/fray/schema"
)

// TestSemantics12BandsAreThoseOfTheLook: a band that changes counts from the look
// that takes it over, for the one that holds and for the one that waits.
func TestSemantics12BandsAreThoseOfTheLook(t *testing.T) {
	const production, interactive, batch = schema.BandProduction, schema.BandInteractive, schema.BandBatch
	for name, c := range map[string]struct {
		heldWas, heldIs   schema.Band
		waitsWas, waitsIs schema.Band // "": it comes with the change
		age               time.Duration
		want              []string
	}{
		"lowered from the band of who waits":      {production, batch, production, production, time.Minute, []string{"a"}},
		"lowered, which ends its minimum lease":   {interactive, batch, production, production, time.Minute, []string{"a"}},
		"lowered, but still in its minimum lease": {production, interactive, production, production, time.Minute, nil},
		"lowered after its minimum lease":         {production, interactive, production, production, schedule.MinLease, []string{"a"}},
		"raised to the band of who comes":         {batch, production, "", production, time.Hour, nil},
		"raised above who comes":                  {batch, production, "", interactive, time.Hour, nil},
		"raised into its minimum lease":           {batch, interactive, "", production, time.Minute, nil},
		"who waits is raised":                     {batch, batch, interactive, production, time.Minute, []string{"a"}},
		"who waits is lowered":                    {interactive, interactive, production, interactive, schedule.MinLease, nil},
		"both are raised":                         {batch, interactive, interactive, production, time.Minute, nil},
		"both trade bands":                        {production, batch, batch, production, time.Minute, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			held := func(b schema.Band) schema.Job { return newJob("a", packed("pool", 4, 1), inBand(b)) }
			waits := func(b schema.Band) schema.Job { return newJob("z", packed("pool", 4, 1), inBand(b)) }
			w := newWorld(t)
			before := []schema.Job{held(c.heldWas)}
			w.accept(withPools(configuration(before...), hostPool(1)))
			w.settle(time.Minute)
			if c.waitsWas != "" {
				w.accept(withPools(configuration(held(c.heldWas), waits(c.waitsWas)), hostPool(1)))
			}
			w.pass(c.age - w.now.Sub(w.startedAt(before[0].Addr)))
			if got := w.yielders(before); len(got) > 0 {
				t.Fatalf("yield before bands change: got %v, want none\n%s", got, w.describe())
			}
			w.accept(withPools(configuration(held(c.heldIs), waits(c.waitsIs)), hostPool(1)))
			w.step(500 * time.Millisecond)
			if got := w.yielders(before); !slices.Equal(got, c.want) {
				t.Fatalf("yield: got %v, want %v\n%s", got, c.want, w.describe())
			}
		})
	}
}

// What has ended of a group says nothing of the band of what still runs.
func TestSemantics12EndedMembersLendNoBand(t *testing.T) {
	w := newWorld(t)
	first := newJob("first", inGroup("g"), packed("pool", 2, 1), inBand(schema.BandProduction))
	runs := newJob("runs", inGroup("g"), packed("pool", 2, 1), inBand(schema.BandBatch))
	w.exits(first.Addr, program{runs: 30 * time.Second})
	w.accept(withPools(configuration(first, runs), hostPool(1)))
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(runs.Addr).Ready && w.job(first.Addr).Ready })
	w.unreachable = true // so that what has ended keeps its slices
	w.until(time.Minute, "ended", func(*plan.Plan) bool { return w.job(first.Addr).Status.Ended() })
	if held := w.job(first.Addr).Slices; len(held) == 0 {
		t.Fatal("what has ended holds no slices, want some")
	}
	w.accept(withPools(configuration(first, runs, newJob("z", packed("pool", 4, 1), inBand(schema.BandProduction))), hostPool(1)))
	w.step(500 * time.Millisecond)
	if got, want := w.yielders([]schema.Job{first, runs}), []string{"runs"}; !slices.Equal(got, want) {
		t.Fatalf("yield: got %v, want %v\n%s", got, want, w.describe())
	}
}

// What waits of a group is a member as much as what runs: a group is as high as the best of its jobs, and
// those that run do not yield to a job of the band of one that waits.
func TestSemantics12WaitingMembersLendTheirBand(t *testing.T) {
	for name, c := range map[string]struct {
		band schema.Band // of the member that waits
		want []string
	}{
		"of the band of who comes": {schema.BandProduction, nil},
		"of a lower one":           {schema.BandBatch, []string{"runs"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			runs := newJob("runs", inGroup("g"), packed("pool", 4, 1), inBand(schema.BandBatch))
			waits := newJob("waits", inGroup("g"), packed("pool", 4, 1), inBand(c.band))
			w.accept(withPools(configuration(runs, waits), hostPool(2)))
			w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(runs.Addr).Ready && w.job(waits.Addr).Ready })
			w.capacity = 1
			w.preempt(w.packedOn(waits.Addr)[0])
			w.until(time.Minute, "waiting", func(*plan.Plan) bool { return len(w.job(waits.Addr).Slices) == 0 })
			w.accept(withPools(configuration(runs, waits, newJob("z", packed("pool", 3, 1), inBand(schema.BandProduction))), hostPool(2)))
			yielded := map[string]bool{}
			for range 120 { // until no host can be had for the one that waits, and beyond
				w.step(pace)
				for _, name := range w.yielders([]schema.Job{runs, waits}) {
					yielded[name] = true
				}
			}
			if got := slices.Sorted(maps.Keys(yielded)); !slices.Equal(got, c.want) {
				t.Fatalf("yield: got %v, want %v\n%s", got, c.want, w.describe())
			}
		})
	}
}
