package incremental

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// drawConfiguration makes a small one with every kind of shape and dependency.
// Jobs only depend on earlier ones.
func drawConfiguration(t *rapid.T) schema.Desired {
	var jobs []schema.Job
	pools := rapid.IntRange(0, 1).Draw(t, "pools")
	at := schema.Address{Kind: schema.KindReservation, Name: "pool"}
	if rapid.Bool().Draw(t, "pool in the group") {
		at.Group = "g"
	}
	n := rapid.IntRange(1, 6).Draw(t, "jobs")
	for i := range n {
		j := newJob(fmt.Sprintf("j%d", i),
			failures(rapid.SampledFrom([]int{0, 1, 3, schema.Unlimited}).Draw(t, "failures")),
			preemptions(rapid.SampledFrom([]int{1, 100, schema.Unlimited}).Draw(t, "preemptions")))
		switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
		case kind == 0:
			asService(&j)
			j.Addr.Key = schema.IntKey(0)
			j.Retries.OnSuccess = rapid.Bool().Draw(t, "always")
			if rapid.Bool().Draw(t, "service in the group") {
				j.Addr.Group = "g"
			}
		case kind <= 2:
			j.Addr.Group = "g"
		}
		switch shape := rapid.IntRange(0, 4).Draw(t, "shape"); {
		case shape == 0 && pools > 0:
			from(at.Scoped())(&j)
			j.Resources.Slices = rapid.IntRange(1, 2).Draw(t, "slices")
		case shape == 1:
			onTPU("v5litepod-8")(&j)
		case shape == 2:
			onTPU("v5litepod-16")(&j)
		case shape == 3:
			j.Resources.Slices = 2
		}
		if len(jobs) > 0 && rapid.IntRange(0, 2).Draw(t, "depends") == 0 {
			on := rapid.SampledFrom(jobs).Draw(t, "on").Addr
			if rapid.Bool().Draw(t, "uses") {
				using(on)(&j)
			} else {
				after(on)(&j)
			}
		}
		if rapid.IntRange(0, 4).Draw(t, "healthy") == 0 {
			healthy(&j)
		}
		j.Lifecycle = drawLifecycle(t, jobs)
		jobs = append(jobs, j)
	}
	if rapid.IntRange(0, 2).Draw(t, "schedules") == 0 {
		drawSchedules(t, jobs)
	}
	desired := configuration(jobs...)
	if pools > 0 {
		tpu := rapid.SampledFrom([]string{"", "v5litepod-16"}).Draw(t, "pool")
		for n := rapid.IntRange(2, 4).Draw(t, "min"); ; n++ {
			pool := newPool("pool", tpu, n)
			pool.Addr = at
			drawElastic(t, &pool)
			if desired = withPools(desired, pool); len(capacity.Check(&desired)) == 0 {
				break
			}
		}
	}
	if rapid.IntRange(0, 1).Draw(t, "keeps") == 0 {
		desired = keeping(desired, time.Duration(rapid.SampledFrom([]int{5, 60, 3600}).Draw(t, "idle"))*time.Second)
	}
	if rapid.IntRange(0, 3).Draw(t, "limit") == 0 {
		desired = limited(desired, 40)
	}
	return desired
}

// drawElastic lets a pool grow, or not.
func drawElastic(t *rapid.T, pool *schema.Reservation) {
	pool.Max = pool.Min
	pool.Max.Slices += rapid.IntRange(0, 2).Draw(t, "more")
	pool.Min.Slices -= rapid.IntRange(0, pool.Min.Slices).Draw(t, "less")
	pool.IdleTimeout = schema.Duration(rapid.SampledFrom([]int{0, 3, 30}).Draw(t, "pool idle")) * schema.Duration(time.Second)
	pool.Growth = rapid.SampledFrom([]schema.Growth{"", schema.GrowthOffer}).Draw(t, "growth")
}

// drawLifecycle is one that says nothing more often than not.
func drawLifecycle(t *rapid.T, others []schema.Job) schema.Lifecycle {
	l := schema.Lifecycle{
		PreventDestroy:      rapid.IntRange(0, 3).Draw(t, "protected") == 0,
		CreateBeforeDestroy: rapid.IntRange(0, 2).Draw(t, "first") == 0,
		Ignore:              rapid.SampledFrom([][]string{nil, nil, nil, {"environment.env.V"}, {"all"}}).Draw(t, "ignore"),
		Trigger:             rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "trigger"),
	}
	if len(others) > 0 && rapid.IntRange(0, 2).Draw(t, "triggered") == 0 {
		by := rapid.SampledFrom(others).Draw(t, "by").Addr
		l.TriggeredBy = []schema.Trigger{{Addr: by, Path: rapid.SampledFrom([]string{"", "environment.env"}).Draw(t, "path")}}
	}
	return l
}

// drawPrograms makes every task's behaviour a function of a seed, so that a
// task does the same when asked twice.
func drawPrograms(t *rapid.T) func(*state.Run, int) program {
	seed := rapid.Uint32().Draw(t, "programs")
	return func(run *state.Run, task int) program {
		h := fnv.New32a()
		_, _ = fmt.Fprintf(h, "%d %s", seed, run.Job)
		kind := h.Sum32()
		_, _ = fmt.Fprintf(h, " %d", run.Attempt)
		attempt := h.Sum32()
		_, _ = fmt.Fprintf(h, " %d", task)
		luck := h.Sum32()
		does := program{runs: time.Duration(luck%40+1) * time.Second}
		if run.Spec.HealthCheck != nil {
			does.health = state.HealthHealthy
		}
		switch {
		case kind%3 == 0:
			does.runs = 0
		case run.Attempt > 6: // crash loops end
			if run.Spec.Retries.OnSuccess {
				does.runs = 0
			}
		case attempt%4 == 0 && luck%2 == 0:
			does.code = 1
		case attempt%9 == 1 && luck%2 == 0:
			does.code, does.state = 1, schema.TaskWorkerFailed
		}
		return does
	}
}

// atRest fails unless every job is where it belongs.
func (w *world) atRest() {
	w.t.Helper()
	for i := range w.doc.Desired.Jobs {
		want := &w.doc.Desired.Jobs[i]
		j := w.doc.Jobs[want.Addr]
		switch {
		case j == nil:
			w.t.Fatalf("%s is not there\n%s", want.Addr, w.describe())
		case j.Status.Ended():
			if len(w.liveTasks(want.Addr)) > 0 || len(j.Slices)+len(j.Staged) > 0 {
				w.t.Fatalf("%s has ended and yet holds something\n%s", want.Addr, w.describe())
			}
		case waitsForOthers(j.Reason), len(w.last.Blocked) > 0 && tooLarge(j.Reason):
		case j.Status != schema.JobRunning || !j.Ready:
			w.t.Fatalf("%s neither runs nor has it ended\n%s", want.Addr, w.describe())
		}
	}
	kept := 0
	for _, r := range w.last.Blocked {
		if r.Verb == plan.VerbDelete && w.doc.Jobs[r.Addr] != nil {
			kept++
		}
	}
	if len(w.doc.Jobs) != len(w.doc.Desired.Jobs)+kept {
		w.t.Fatalf("%d jobs are declared and %d more are protected, %d are there\n%s", len(w.doc.Desired.Jobs), kept, len(w.doc.Jobs), w.describe())
	}
	for name, s := range w.slices {
		if w.doc.Slices[name] == nil && s.spec.Stack == w.doc.Stack() {
			w.t.Fatalf("slice %s is there and not recorded\n%s", name, w.describe())
		}
	}
	for name := range w.assignments {
		if w.slices[name] == nil {
			w.t.Fatalf("the mailbox of %s is left behind\n%s", name, w.describe())
		}
	}
}

// waitsForOthers reports whether a job waits for one that failed, or for what
// others run on for ever.
func waitsForOthers(why string) bool {
	return strings.HasPrefix(why, "waits for ") || strings.Contains(why, "is still used by") || strings.HasPrefix(why, "its group starts together; waiting for ") || strings.Contains(why, "; used by ") || strings.Contains(why, " are in use") || strings.HasPrefix(why, "behind ")
}

// rest steps until nothing happens any more and stays so.
func (w *world) rest() {
	w.t.Helper()
	calm, pace := 0, time.Second
	for range 2000 {
		p := w.step(pace)
		switch {
		case !idle(p):
			calm, pace = 0, time.Second
		case w.quiet(p):
			if calm++; calm == 3 {
				return
			}
			if w.scheduled() { // it is quiet for less than a minute
				pace = time.Second
			}
		default:
			calm, pace = 0, min(2*pace, 10*time.Second)
		}
	}
	w.t.Fatalf("the world does not come to rest\n%s", w.describe())
}

// scheduled reports whether a job starts by a schedule, once a minute maybe.
func (w *world) scheduled() bool {
	return slices.ContainsFunc(w.doc.Desired.Jobs, func(j schema.Job) bool { return j.Schedule != nil })
}

// idle reports whether a plan has nothing to do: what it refuses is not done.
func idle(p *plan.Plan) bool {
	asked := slices.ContainsFunc(p.Changes, func(c plan.Change) bool {
		refused := slices.ContainsFunc(p.Blocked, func(r plan.BlockedChange) bool { return r.Addr == c.Addr })
		return c.Verb != plan.VerbNone && !refused
	})
	return !asked && len(p.Drift) == 0 && len(p.Actions) == 0
}

// quiet reports whether nothing waits but for what failed and what still runs to its end.
func (w *world) quiet(p *plan.Plan) bool {
	for _, waits := range p.Pending {
		for _, why := range waits.Reasons {
			if !waitsForOthers(why) && (len(p.Blocked) == 0 || !tooLarge(why)) {
				return false
			}
		}
	}
	return !w.ending()
}

// tooLarge reports whether a gang waits for more slices than its reservation has,
// which comes of what is blocked: it would not be accepted otherwise.
func tooLarge(why string) bool {
	var pool string
	var needs, has int
	n, err := fmt.Sscanf(why, "%s needs %d of its %d slices at once", &pool, &needs, &has)
	return err == nil && n == 3 && needs > has || strings.Contains(why, ": no room for ")
}

func TestWorldComesToRestAfterAnyFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.wayward = true
		w.program = drawPrograms(t)
		w.accept(drawConfiguration(t))
		for range rapid.IntRange(0, 60).Draw(t, "faults") {
			fault(t, w)
			w.step(time.Duration(rapid.SampledFrom([]int{40, 500, 3000}).Draw(t, "ms")) * time.Millisecond)
		}
		w.clear()
		w.rest()
		w.atRest()
	})
}
