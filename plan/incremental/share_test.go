package incremental

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/schedule"
	"github.com/fray-ml/fray/schema"
)

// drawShared makes a configuration of jobs in the cloud that share reservations, groups, hosts,
// limits, and namespaces with budgets and users.
func drawShared(t *rapid.T) schema.Desired {
	pools := rapid.IntRange(1, 2).Draw(t, "pools")
	var jobs []schema.Job
	for i := range rapid.IntRange(3, 10).Draw(t, "jobs") {
		j := newJob(fmt.Sprintf("j%d", i/2), instance(i%2), failures(schema.Unlimited), preemptions(schema.Unlimited), inSpace(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "space")))
		j.User = rapid.SampledFrom([]string{"", "ann", "bob"}).Draw(t, "user")
		switch rapid.IntRange(0, 3).Draw(t, "shape") {
		case 0:
			from(fmt.Sprintf("p%d", rapid.IntRange(0, pools-1).Draw(t, "pool")))(&j)
		case 1:
			packed("hosts", float64(rapid.IntRange(1, 2).Draw(t, "cpu")), 1)(&j)
		default:
			inCloud(&j)
		}
		if rapid.IntRange(0, 2).Draw(t, "group") == 0 && !j.Resources.Packed {
			j.Addr.Group = fmt.Sprintf("g%d", i%2)
		}
		if len(jobs) > 0 && rapid.IntRange(0, 3).Draw(t, "depends") == 0 {
			after(rapid.SampledFrom(jobs).Draw(t, "on").Addr)(&j)
		}
		j.Band = rapid.SampledFrom([]schema.Band{"", "", schema.BandProduction, schema.BandBatch}).Draw(t, "band")
		jobs = append(jobs, j)
	}
	desired := zoned(configuration(jobs...), west, south)
	desired.Providers = append(desired.Providers, schema.Provider{Name: schema.ProviderLocal, Slices: rapid.SampledFrom([]int{0, 4}).Draw(t, "limit")})
	all := []schema.Reservation{cpuPool("hosts", 4, 2)}
	for i := range pools {
		pool := newPool(fmt.Sprintf("p%d", i), "v5litepod-16", rapid.IntRange(1, 3).Draw(t, "size"))
		pool.Provider = schema.ProviderGCP
		drawElastic(t, &pool)
		pool.Max.Slices = max(pool.Max.Slices, 2)
		all = append(all, pool)
	}
	desired = together(withPools(desired, all...), func(g *schema.JobGroup) { g.SameZone = rapid.Bool().Draw(t, "same zone") })
	return withSpaces(desired, newSpace("a", nil), newSpace("b", func(n *schema.Namespace) {
		n.MaxChips, n.Weight = rapid.SampledFrom([]int{0, 32}).Draw(t, "max"), 2
		n.Users = []schema.UserShare{{Name: "ann", MaxChips: 16}}
	}), newSpace("c", func(n *schema.Namespace) { n.Budget = rapid.SampledFrom([]int{0, 16, 64}).Draw(t, "budget") }))
}

// A Planner finds what Diff finds where jobs share clouds, reservations, groups, hosts and
// budgets, and most of its plans are made on a part: each step of a world compares them.
// Checks find no job that was taken for clean and was not.
func TestPlannerFindsWhatDiffFindsOfSharedStack(t *testing.T) {
	steps, parts := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.wayward = true
		w.program = drawPrograms(t)
		desired := drawShared(t)
		w.accept(desired)
		for range rapid.IntRange(10, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 7).Draw(t, "event") {
			case 0:
				plainFault(t, w)
			case 1:
				w.accept(desired)
			case 2:
				if rapid.IntRange(0, 3).Draw(t, "long") == 0 {
					w.pass(schedule.MinLease) // from then on jobs may be ended for others
				}
			}
			w.step(time.Duration(rapid.SampledFrom([]int{40, 500, 3000}).Draw(t, "ms")) * time.Millisecond)
			if found := w.planner.Differing(); len(found) > 0 {
				t.Fatalf("a check finds that %v were to change\n%s", found, w.describe())
			}
			if steps++; w.planner.focus.partial {
				parts++
			}
		}
	})
	if steps > fewSteps && parts < steps/3 {
		t.Errorf("%d of %d steps planned a part; the test shows little", parts, steps)
	}
}

// A job that waits ends one of a lower band about which nothing is to be decided, once that
// has run for long enough.
func TestPartFindsVictimsAmongTheRest(t *testing.T) {
	w := newWorld(t)
	low := newJob("low", inBand(schema.BandBatch))
	w.accept(limited(configuration(low), 1))
	w.settle(time.Minute)
	high := newJob("high", inBand(schema.BandInteractive))
	w.accept(limited(configuration(low, high), 1))
	w.pass(schedule.MinLease + time.Minute)
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(high.Addr).Ready })
	if got := w.job(low.Addr).Yields; got != 1 {
		t.Errorf("the job of the lower band yielded %d times, want once", got)
	}
}
