package incremental

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// meter brings the metering up to date, as apply does before it saves.
func (w *world) meter() {
	if len(w.doc.Slices) > 0 || w.doc.Metering != nil {
		w.doc = w.planner.Metered(w.doc, accounting.Meter(accounting.Input{Doc: w.doc, Now: w.now}))
	}
}

func (w *world) meterIfDue() {
	if accounting.IsDue(w.doc, w.now) {
		w.meter()
	}
}

// costing gives the namespace of all jobs a budget of money.
func costing(desired schema.Desired, budget schema.CostBudget) schema.Desired {
	return withSpaces(desired, newSpace("default", func(n *schema.Namespace) { n.Cost = budget }))
}

// anHour is what an hour of inCloud costs at most.
const anHour = 12.48

// waitsForMoney reports whether a job has no slices and waits for its namespace's budget.
func (w *world) waitsForMoney(addr schema.Address) bool {
	i, waits := place(w.last.Pending, addr)
	return waits && w.last.Pending[i].Kind == plan.WaitBudget && len(w.job(addr).Slices) == 0
}

// A budget that is used up holds new work; what has begun goes on, through a preemption, too.
// The next month begins with a new budget.
func TestBudgetHoldsNewWork(t *testing.T) {
	w := newWorld(t)
	w.now = time.Date(2026, 1, 31, 22, 0, 0, 0, time.UTC)
	budget := schema.CostBudget{MaxPerMonth: anHour, Action: schema.CostHold}
	w.accept(costing(zoned(configuration(newJob("a", inCloud, preemptions(9))), west), budget))
	w.settle(time.Minute)
	w.pass(time.Hour + time.Minute)
	w.accept(costing(zoned(configuration(newJob("a", inCloud, preemptions(9)), newJob("b", inCloud)), west), budget))
	w.pass(time.Minute)
	if !w.waitsForMoney(jobAddr("b")) {
		t.Fatalf("b does not wait for the budget\n%s", w.describe())
	}
	w.preempt(w.sliceOf(jobAddr("a"), 0))
	w.pass(2 * time.Minute)
	w.wantJob(jobAddr("a"), schema.JobRunning, 2, 0, 1)
	w.pass(time.Date(2026, 2, 1, 0, 1, 0, 0, time.UTC).Sub(w.now))
	w.wantJob(jobAddr("b"), schema.JobRunning, 1, 0, 0)
}

// A budget that stops what runs has it stopped once, as no failure and no preemption; its
// slices are given back, and it begins again when the budget is raised.
func TestBudgetStopsWhatRuns(t *testing.T) {
	w := newWorld(t)
	budget := schema.CostBudget{MaxPerMonth: anHour, Action: schema.CostStop}
	desired := func() schema.Desired {
		return costing(zoned(configuration(newJob("a", inCloud, failures(0), preemptions(0)), newJob("b", inCloud, inGroup("g")), newJob("c", inCloud, inGroup("g"))), west), budget)
	}
	w.accept(desired())
	w.settle(time.Minute)
	w.pass(30 * time.Minute) // three slices
	for _, addr := range []schema.Address{jobAddr("a"), memberAddr("g", "b"), memberAddr("g", "c")} {
		if !w.waitsForMoney(addr) {
			t.Fatalf("%s does not wait for the budget\n%s", addr, w.describe())
		}
		j := w.job(addr)
		if last := j.Last(); j.Failures != 0 || j.Preemptions != 0 || j.Attempt != 1 || last.Outcome != schema.TaskKilled || j.Streak != 0 {
			t.Errorf("%s: %d failures, %d preemptions, attempt %d %s, streak %d", addr, j.Failures, j.Preemptions, j.Attempt, last.Outcome, j.Streak)
		}
	}
	if len(w.doc.Slices)+len(w.ownSlices()) > 0 {
		t.Fatalf("%d slices are left\n%s", len(w.ownSlices()), w.describe())
	}
	w.crash()
	w.pass(time.Minute)
	if len(w.doc.Slices)+len(w.ownSlices()) > 0 {
		t.Fatalf("%d slices were made by the next controller\n%s", len(w.ownSlices()), w.describe())
	}
	budget.MaxPerMonth = 1000
	w.accept(desired())
	w.settle(time.Minute)
	w.wantJob(jobAddr("a"), schema.JobRunning, 2, 0, 0)
}

// What a budget has stopped begins again with the next month, as another attempt, and no failure.
func TestBudgetStopEndsWithTheMonth(t *testing.T) {
	w := newWorld(t)
	w.now = time.Date(2026, 1, 31, 21, 0, 0, 0, time.UTC)
	w.accept(costing(zoned(configuration(newJob("a", inCloud, failures(0), preemptions(0))), west), schema.CostBudget{MaxPerMonth: anHour, Action: schema.CostStop}))
	w.settle(time.Minute)
	w.pass(time.Hour + 10*time.Minute)
	if !w.waitsForMoney(jobAddr("a")) {
		t.Fatalf("a does not wait for the budget\n%s", w.describe())
	}
	w.pass(time.Date(2026, 1, 31, 23, 58, 0, 0, time.UTC).Sub(w.now))
	if !w.waitsForMoney(jobAddr("a")) {
		t.Fatalf("a has begun again before the month's end\n%s", w.describe())
	}
	w.crash()
	w.pass(time.Date(2026, 2, 1, 0, 2, 0, 0, time.UTC).Sub(w.now))
	w.wantJob(jobAddr("a"), schema.JobRunning, 2, 0, 0)
}

// A budget that only warns stops nothing.
func TestBudgetWarns(t *testing.T) {
	w := newWorld(t)
	w.accept(costing(zoned(configuration(newJob("a", inCloud)), west), schema.CostBudget{MaxPerMonth: anHour}))
	w.settle(time.Minute)
	w.pass(50 * time.Minute)
	if got := w.doc.Metering.Levels["default"]; got != state.BudgetNearly {
		t.Errorf("after 50 minutes of an hour's budget it is %q", got)
	}
	w.pass(12 * time.Minute)
	if got := w.doc.Metering.Levels["default"]; got != state.BudgetExhausted {
		t.Errorf("after more than an hour it is %q", got)
	}
	w.wantJob(jobAddr("a"), schema.JobRunning, 1, 0, 0)
}

// Whatever the order of jobs, their groups and bands, and whatever happens: while a budget is
// used up no new work is given slices, with stop nothing keeps any, and plans from part to part
// are those of the whole (the oracle of world compares them).
func TestBudgetsHoldInEveryOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.now = time.Date(2026, 1, 31, 23, 0, 0, 0, time.UTC)
		w.wayward = true
		budget := schema.CostBudget{
			MaxPerMonth: float64(rapid.IntRange(1, 40).Draw(t, "budget")), Action: rapid.SampledFrom(schema.CostActions()).Draw(t, "action"),
			Price: rapid.SampledFrom(schema.PriceEnds()).Draw(t, "price"),
		}
		jobs := []schema.Job{newJob("j0", inCloud, failures(schema.Unlimited), preemptions(schema.Unlimited))}
		next := func() {
			j := newJob(fmt.Sprintf("j%d", len(jobs)), inCloud, failures(schema.Unlimited), preemptions(schema.Unlimited))
			j.Band = rapid.SampledFrom([]schema.Band{schema.BandProduction, schema.BandInteractive, schema.BandBatch}).Draw(t, "band")
			if rapid.Bool().Draw(t, "in the group") {
				j.Addr.Group = "g"
			}
			jobs = append(jobs, j)
		}
		accept := func() { w.accept(costing(zoned(configuration(jobs...), west), budget)) }
		accept()
		for range rapid.IntRange(3, 10).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				next()
				accept()
			case 1:
				w.crash()
			case 2:
				if j := w.doc.Jobs[jobs[0].Addr]; j != nil && len(j.Slices) > 0 {
					w.preempt(j.Slices[0])
				}
			case 3:
				budget.MaxPerMonth += float64(rapid.IntRange(-5, 10).Draw(t, "raise"))
				budget.MaxPerMonth = max(1, budget.MaxPerMonth)
				accept()
			}
			w.passHeld(t, time.Duration(rapid.SampledFrom([]int{1, 3, 10}).Draw(t, "minutes"))*time.Minute)
		}
		if budget.Action != schema.CostStop {
			return
		}
		w.passHeld(t, 3*time.Minute)
		if b := accounting.Budgets(&w.doc.Desired, w.doc.Metering, w.now); b[0].Stops() && w.doc.Metering.Levels["default"] == state.BudgetExhausted {
			w.passHeld(t, time.Minute)
			if b := accounting.Budgets(&w.doc.Desired, w.doc.Metering, w.now); b[0].Stops() && len(w.doc.Slices)+len(w.ownSlices()) > 0 {
				t.Fatalf("%d slices are left\n%s", len(w.ownSlices()), w.describe())
			}
		}
	})
}

// passHeld lets time pass and checks that each step gives no slices to new work that is held.
func (w *world) passHeld(t *rapid.T, d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); {
		before := w.doc
		held := accounting.Budgets(&before.Desired, before.Metering, w.now)
		w.step(5 * time.Second)
		if len(held) == 0 || !held[0].Holds() {
			continue
		}
		begun := map[string]bool{} // groups of which some has begun
		for addr, j := range before.Jobs {
			if j.Attempt > 0 || len(j.Slices) > 0 {
				begun[addr.Group] = addr.Group != ""
			}
		}
		for addr, j := range w.last.Next.Jobs {
			was := before.Jobs[addr]
			fresh := was == nil || len(was.Slices) == 0 && was.Attempt == 0
			if len(j.Slices) > 0 && fresh && (held[0].Stops() || !begun[addr.Group]) {
				t.Fatalf("%s was given slices though the budget is used up\n%s", addr, w.describe())
			}
		}
	}
}
