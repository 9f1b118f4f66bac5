package incremental

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// drawGangs makes a configuration of gangs in the cloud that share nothing but room.
func drawGangs(t *rapid.T) schema.Desired {
	var jobs []schema.Job
	for i := range rapid.IntRange(4, 10).Draw(t, "jobs") {
		j := newJob("j", instance(i), failures(schema.Unlimited), preemptions(schema.Unlimited), inCloud)
		j.Band = rapid.SampledFrom([]schema.Band{"", "", schema.BandProduction, schema.BandBatch}).Draw(t, "band")
		if rapid.IntRange(0, 3).Draw(t, "two") == 0 {
			j.Resources.Slices = 2
		}
		if rapid.IntRange(0, 4).Draw(t, "healthy") == 0 {
			healthy(&j)
		}
		jobs = append(jobs, j)
	}
	return zoned(configuration(jobs...), west, south)
}

// loseAll takes all slices of the stack away, each as a function does.
func (w *world) loseAll(lose func(slice string)) {
	for _, name := range slices.Sorted(maps.Keys(w.slices)) {
		if name != w.oracle.foreign.Name {
			lose(name)
		}
	}
}

// A Planner that decides about few of the jobs that wait for what is under way finds what Diff
// finds, whatever becomes of their slices meanwhile: each step of a world compares them.
func TestPlannerFindsWhatDiffFindsInTurn(t *testing.T) {
	steps, passed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.wayward = true
		w.program = drawPrograms(t)
		desired := drawGangs(t)
		w.accept(desired)
		w.bootTakes = time.Duration(rapid.IntRange(1, 30).Draw(t, "boot")) * time.Second
		most := rapid.IntRange(1, 3).Draw(t, "most")
		for range rapid.IntRange(10, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 7).Draw(t, "event") {
			case 0:
				w.planner.turns.most = most
				plainFault(t, w)
			case 1:
				w.accept(desired)
			case 2, 3:
				w.loseAll(rapid.SampledFrom([]func(string){w.vanish, w.preempt}).Draw(t, "lose"))
			case 4:
				w.capacity, w.quota = rapid.IntRange(0, 6).Draw(t, "capacity"), rapid.SampledFrom([]int{0, 2, 6}).Draw(t, "quota")
			case 5:
				loses := rapid.Bool().Draw(t, "loses")
				w.loses = func(plan.Action) bool { return loses && rapid.IntRange(0, 1).Draw(t, "lost") == 0 }
			}
			w.planner.turns.most = most
			w.step(time.Duration(rapid.SampledFrom([]int{40, 500, 3000}).Draw(t, "ms")) * time.Millisecond)
			steps++
		}
		passed += w.oracle.passed
	})
	if steps > fewSteps && passed < steps/100 {
		t.Errorf("%d of %d steps left jobs out; the test shows little", passed, steps)
	}
}

// As long as nothing differs of what jobs wait for, each of them has its turn, and one whose
// task fails meanwhile is decided about at once.
func TestEachWaitingJobHasItsTurn(t *testing.T) {
	const gangs, most = 10, 3
	w := newWorld(t)
	var jobs []schema.Job
	for i := range gangs {
		jobs = append(jobs, newJob("j", instance(i), failures(schema.Unlimited), preemptions(schema.Unlimited), inCloud))
	}
	jobs = append(jobs, newJob("k", failures(schema.Unlimited)))
	other := jobs[gangs].Addr
	w.accept(zoned(configuration(jobs...), west))
	w.planner.turns.most = most
	w.settle(time.Minute)
	w.pass(time.Hour) // what dies young would count against its zone
	lost := slices.Sorted(maps.Keys(w.slices))
	w.bootTakes = time.Hour
	for _, name := range lost {
		if s := w.doc.Slices[name]; s != nil && s.Spec.Owner != other {
			w.vanish(name)
		}
	}
	calm := 0
	w.until(time.Minute, "left out", func(*plan.Plan) bool {
		if calm++; len(w.planner.turns.passed) != gangs-most {
			calm = 0
		}
		return calm == gangs
	})
	turns := map[int]int{}
	for range 10 {
		w.step(pace)
		left := w.planner.turns.passed
		if len(left) != gangs-most {
			t.Fatalf("%d jobs are left out, want %d\n%s", len(left), gangs-most, w.describe())
		}
		for i := range gangs {
			if !slices.Contains(left, i) {
				turns[i]++
			}
		}
	}
	for i := range gangs {
		if turns[i] != most {
			t.Errorf("gang %d had %d turns, want %d", i, turns[i], most)
		}
	}
	w.fail(w.job(other).Slices[0], 0, 1)
	w.step(pace) // it reports that
	for range 2 {
		w.step(pace)
		if len(w.planner.turns.passed) != gangs-most {
			t.Errorf("%d gangs are left out while another job fails, want %d", len(w.planner.turns.passed), gangs-most)
		}
	}
	if got := w.job(other).Failures; got != 1 {
		t.Errorf("%d failures are counted of a job that has failed meanwhile, want 1", got)
	}
	w.bootTakes = time.Second
	for _, s := range w.slices {
		for _, h := range s.hosts {
			h.bootsAt = w.now
		}
	}
	w.settle(5 * time.Minute)
	for i := range gangs {
		if j := w.job(jobs[i].Addr); j.Failures != 0 || j.Preemptions != 1 || !j.Ready {
			t.Errorf("%s has failed %d times and was preempted %d times, ready %t; want 0, 1, true", jobs[i].Addr, j.Failures, j.Preemptions, j.Ready)
		}
	}
}

// Once a place has failed, all that are about to be asked for there are decided about at once, as
// Diff does: each step compares them.
func TestNoneWaitsForItsTurnWhereAPlaceHasFailed(t *testing.T) {
	const gangs, most = 6, 2
	w := newWorld(t)
	var jobs []schema.Job
	for i := range gangs {
		jobs = append(jobs, newJob("j", instance(i), preemptions(schema.Unlimited), inCloud))
	}
	w.accept(zoned(configuration(jobs...), west, south))
	w.settle(time.Minute)
	w.pass(time.Hour)
	young := newJob("young", preemptions(schema.Unlimited), inCloud)
	w.accept(zoned(configuration(append(jobs, young)...), west, south))
	w.settle(time.Minute)
	w.loses = func(a plan.Action) bool { return a.Verb == plan.ForgetSlice }
	for i := range gangs {
		w.vanish(w.job(jobs[i].Addr).Slices[0])
	}
	w.planner.turns.most = most
	w.until(time.Minute, "left out", func(*plan.Plan) bool { return len(w.planner.turns.passed) == gangs-most })
	w.step(pace)
	w.preempt(w.job(young.Addr).Slices[0])
	w.run(10 * time.Second)
	if len(w.doc.ZoneHealth) == 0 {
		t.Fatalf("no place has failed\n%s", w.describe())
	}
	for i := range gangs {
		if zone := w.doc.Slices[w.job(jobs[i].Addr).Slices[0]].Spec.Zone; zone != south {
			t.Errorf("%s waits for a slice in %s, want %s", jobs[i].Addr, zone, south)
		}
	}
}
