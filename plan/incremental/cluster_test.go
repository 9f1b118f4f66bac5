package incremental

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/schedule"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Fair scheduling. The numbers are those of the list that the tests of all
// packages share.

func inSpace(name string) jobOption     { return func(j *schema.Job) { j.Namespace = name } }
func ofUserNamed(name string) jobOption { return func(j *schema.Job) { j.User = name } }
func inBand(band schema.Band) jobOption { return func(j *schema.Job) { j.Band = band } }
func startsIn(d time.Duration) jobOption {
	return func(j *schema.Job) { j.SchedulingTimeout = schema.Duration(d) }
}
func spaceAddr(name string) schema.Address {
	return schema.Address{Kind: schema.KindNamespace, Name: name}
}

// withSpaces declares namespaces.
func withSpaces(desired schema.Desired, spaces ...schema.Namespace) schema.Desired {
	for i := range spaces {
		spaces[i].Addr.Kind = schema.KindNamespace
	}
	desired.Namespaces = spaces
	return desired
}

func newSpace(name string, change func(*schema.Namespace)) schema.Namespace {
	n := schema.Namespace{Addr: spaceAddr(name)}
	if change != nil {
		change(&n)
	}
	return n
}

// whyOf is all that is said of why something waits.
func (w *world) whyOf(addr schema.Address) string {
	for _, p := range w.last.Pending {
		if p.Addr == addr {
			return strings.Join(p.Reasons, " | ")
		}
	}
	return ""
}

func (w *world) wantReason(addr schema.Address, parts ...string) {
	w.t.Helper()
	got := w.whyOf(addr)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			w.t.Fatalf("%s waits: got %q, want %q in it\n%s", addr, got, part, w.describe())
		}
	}
}

// startedAt is when a job's first attempt began, zero if it has not.
func (w *world) startedAt(addr schema.Address) time.Time {
	if j := w.doc.Jobs[addr]; j != nil && len(j.Attempts) > 0 {
		return j.Attempts[0].StartedAt
	}
	return time.Time{}
}

func TestSemantics06SchedulingTimeout(t *testing.T) {
	w := newWorld(t)
	w.accept(limited(configuration(newJob("a"), newJob("b", startsIn(10*time.Minute)), newJob("c", inGroup("g"), startsIn(5*time.Minute)), newJob("d", inGroup("g")),
		newJob("e", after(jobAddr("a")), startsIn(time.Minute))), 1))
	w.pass(12 * time.Minute)
	for addr, want := range map[schema.Address]string{
		jobAddr("b"):         "unschedulable: waited 10m0s; last: provider local: needs 1 more slice, 1 of 1 are in use",
		memberAddr("g", "c"): "unschedulable: waited 5m0s; last: provider local: needs 2 more slices",
		memberAddr("g", "d"): "unschedulable: waited 5m0s; last: provider local: needs 2 more slices",
		jobAddr("e"):         "unschedulable: waited 1m0s; last: waits for job.a to succeed",
	} {
		if j := w.job(addr); j.Status != schema.JobFailed || !strings.HasPrefix(j.Reason, want) {
			t.Errorf("%s: got %s, %q, want failed, %q", addr, j.Status, j.Reason, want)
		}
	}
	w.wantJob(jobAddr("a"), schema.JobRunning, 1, 0, 0)
}

func TestSemantics06NeverFits(t *testing.T) {
	chips := func(n int) func(*schema.Namespace) { return func(s *schema.Namespace) { s.MaxChips = n } }
	user := func(s *schema.Namespace) { s.Users = []schema.UserShare{{Name: "ann", MaxCPU: 1.5}} }
	desired := limited(withSpaces(schema.Desired{}, newSpace("n", chips(8)), newSpace("m", user)), 3)
	tpu := onTPU("v5litepod-8")
	for name, c := range map[string]struct {
		jobs []schema.Job
		want string
	}{
		"fits":     {[]schema.Job{newJob("a", tpu, inSpace("n"))}, ""},
		"gang":     {[]schema.Job{newJob("a", tpu, onSlices(2), inSpace("n"))}, "namespace.n: needs 16 more chips, 0 of its max_chips 8 are held"},
		"group":    {[]schema.Job{newJob("a", tpu, inGroup("g"), inSpace("n")), newJob("b", tpu, inGroup("g"), inSpace("n"))}, "needs 16 more chips"},
		"separate": {[]schema.Job{newJob("a", tpu, inSpace("n")), newJob("b", tpu, inSpace("n"))}, ""},
		"user":     {[]schema.Job{newJob("a", onSlices(2), inSpace("m"), ofUserNamed("ann"))}, `user "ann" of namespace.m: needs 2 more cores, 0 of its max_cpu 1.5 are held`},
		"another":  {[]schema.Job{newJob("a", onSlices(2), inSpace("m"), ofUserNamed("bob"))}, ""},
		"provider": {[]schema.Job{newJob("a", onSlices(4))}, "provider local could never hold them"},
	} {
		got := strings.Join(lifecycle.NeverFits(&desired, c.jobs), " ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestSemantics13SharesAcrossNamespacesAndUsers(t *testing.T) {
	w := newWorld(t)
	w.program = func(*state.Run, int) program { return program{runs: 20 * time.Second} }
	var jobs []schema.Job
	add := func(n int, name, space, user string) {
		for i := range n {
			jobs = append(jobs, newJob(name, instance(i), inSpace(space), ofUserNamed(user)))
		}
	}
	add(40, "a", "one", "")    // first by address, and many
	add(20, "b", "two", "ann") // of twice the weight
	add(20, "c", "two", "bob") // who share it
	desired := limited(withSpaces(configuration(jobs...), newSpace("one", nil), newSpace("two", func(n *schema.Namespace) { n.Weight = 2 })), 6)
	w.accept(desired)
	w.step(time.Second)
	held := map[string]int{}
	for _, j := range w.doc.Jobs {
		held[j.Spec.Addr.Name] += len(j.Slices)
	}
	if held["a"] != 2 || held["b"] != 2 || held["c"] != 2 {
		t.Errorf("slices: got %v, want 2 each", held)
	}
}

func TestSemantics13FirstInFirstOut(t *testing.T) {
	w := newWorld(t)
	w.program = func(*state.Run, int) program { return program{runs: 5 * time.Second} }
	first := []schema.Job{newJob("z"), newJob("y")}
	w.accept(limited(configuration(first...), 1))
	w.step(time.Second)
	w.accept(limited(configuration(append(first, newJob("a"))...), 1))
	w.settle(5 * time.Minute)
	y, z, a := w.startedAt(jobAddr("y")), w.startedAt(jobAddr("z")), w.startedAt(jobAddr("a"))
	if !y.Before(z) || !z.Before(a) {
		t.Errorf("started: y at %s, z at %s, a at %s, want that order", y, z, a)
	}
}

// Who waits for others has no place in the queue: no unit stands behind it, or
// before others by it.
func TestSemantics13WhoWaitsForOthersIsNotInTheQueue(t *testing.T) {
	held := newJob("z", inSpace("one"), ofUserNamed("ann"), after(jobAddr("y"))) // of the user who has least
	running := []schema.Job{newJob("x", inSpace("one")), newJob("y", inSpace("two"))}
	for _, tt := range []struct {
		name string
		more []schema.Job
	}{{"without it", nil}, {"with it", []schema.Job{held}}} {
		t.Run(tt.name, func(t *testing.T) {
			spaces := func(jobs ...schema.Job) schema.Desired {
				return limited(withSpaces(configuration(slices.Concat(running, jobs)...), newSpace("one", nil), newSpace("two", nil)), 2)
			}
			w := newWorld(t)
			w.accept(spaces())
			w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(jobAddr("x")).Ready && w.job(jobAddr("y")).Ready })
			w.accept(spaces(append(tt.more, newJob("a", inSpace("one")), newJob("b", inSpace("two")))...))
			w.run(2 * time.Second)
			w.wantReason(jobAddr("b"), "behind 1 other: job.a")
		})
	}
}

func TestSemantics13OverBudgetYields(t *testing.T) {
	tpu := onTPU("v5litepod-8")
	rich := newSpace("rich", func(n *schema.Namespace) { n.Budget = 8 })
	held := []schema.Job{newJob("a", instance(0), tpu, inSpace("rich")), newJob("a", instance(1), tpu, inSpace("rich"))}
	w := newWorld(t)
	w.accept(limited(withSpaces(configuration(held...), rich), 2))
	w.settle(time.Minute) // there is room: it has both
	w.pass(schedule.MinLease)
	poor := newJob("p", tpu, inSpace("poor"))
	third := newJob("a", instance(2), tpu, inSpace("rich"))
	w.accept(limited(withSpaces(configuration(append(slices.Clone(held), poor, third)...), rich, newSpace("poor", nil)), 2))
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(poor.Addr).Ready })
	w.wantJob(held[0].Addr, schema.JobRunning, 1, 0, 0)
	if got := w.job(held[1].Addr); got.Yields != 1 {
		t.Errorf("the job beyond the budget yielded %d times, want once", got.Yields)
	}
	w.wantReason(third.Addr, "it is beyond the budget of namespace.rich (8 chips), and so waits as batch does")
}

func TestNamespaceLimitsAreExact(t *testing.T) {
	tpu := onTPU("v5litepod-8")
	w := newWorld(t)
	w.createTakes = time.Minute // what is being made counts
	jobs := []schema.Job{
		newJob("a", instance(0), tpu, inSpace("n"), ofUserNamed("ann")), newJob("a", instance(1), tpu, inSpace("n"), ofUserNamed("ann")),
		newJob("b", inGroup("g"), tpu, inSpace("n")), newJob("c", inGroup("g"), tpu, inSpace("n")),
	}
	desired := withSpaces(configuration(jobs...), newSpace("n", func(n *schema.Namespace) {
		n.MaxChips = 23
		n.Users = []schema.UserShare{{Name: "ann", MaxChips: 15}}
	}))
	w.accept(desired)
	w.step(time.Second)
	w.step(time.Second)
	held := map[string]int{}
	for _, j := range w.doc.Jobs {
		held[j.Spec.Addr.String()] = len(j.Slices)
	}
	if want := map[string]int{"job.a[0]": 1, "job.a[1]": 0, "job_group.g.job.b": 0, "job_group.g.job.c": 0}; fmt.Sprint(held) != fmt.Sprint(want) {
		t.Fatalf("slices: got %v, want %v", held, want)
	}
	w.wantReason(jobs[1].Addr, `user "ann" of namespace.n: needs 8 more chips, 8 of its max_chips 15 are held`)
	w.wantReason(memberAddr("g", "b"), "namespace.n: needs 16 more chips, 8 of its max_chips 23 are held")
}

// A gang is overtaken for a while, and then no more.
func TestBigGangIsNotOvertakenForEver(t *testing.T) {
	w := newWorld(t)
	w.program = func(run *state.Run, _ int) program {
		n, _ := run.Job.Key.Int()
		return program{runs: 2*time.Minute + time.Duration(n%4)*20*time.Second}
	}
	var jobs []schema.Job
	for i := range 60 {
		jobs = append(jobs, newJob("small", instance(i)))
	}
	w.accept(limited(configuration(jobs[:4]...), 4))
	w.run(20 * time.Second)
	big := newJob("big", onSlices(4))
	w.accept(limited(configuration(append(slices.Clone(jobs), big)...), 4))
	w.pass(schedule.Patience + 30*time.Second)
	overtaken := 0
	for _, j := range jobs[4:] {
		if !w.startedAt(j.Addr).IsZero() {
			overtaken++
		}
	}
	if overtaken == 0 {
		t.Error("no job went ahead of a gang that did not fit")
	}
	w.wantReason(jobs[59].Addr, "reserved for job.big, which has waited 10m")
	w.until(10*time.Minute, "running", func(*plan.Plan) bool { return w.job(big.Addr).Ready })
	for _, j := range jobs[4:] {
		if at := w.startedAt(j.Addr); at.After(w.job(big.Addr).AdmittedAt.Add(schedule.Patience+time.Minute)) && at.Before(w.startedAt(big.Addr)) {
			t.Errorf("%s started at %s, ahead of the gang that had waited", j.Addr, at)
		}
	}
}

// A unit that needs nothing of a provider reserves nothing there: others wait for the
// gang that does.
func TestReservedForTheUnitThatNeedsIt(t *testing.T) {
	w := newWorld(t)
	w.program = func(*state.Run, int) program { return program{runs: 5 * time.Hour} }
	first := func(j *schema.Job) { j.Priority = 9 }
	second := func(j *schema.Job) { j.Priority = 5 }
	declared := func(more ...schema.Job) schema.Desired {
		jobs := append([]schema.Job{newJob("long"), newJob("full", packed("pool", 4, 1))}, more...)
		return limited(withPools(configuration(jobs...), cpuPool("pool", 4, 1)), 4)
	}
	w.accept(declared())
	w.run(time.Minute)
	waiting := []schema.Job{newJob("cores", packed("pool", 4, 1), first), newJob("big", onSlices(3), second)}
	w.accept(declared(waiting...))
	w.pass(schedule.Patience + time.Minute)
	w.accept(declared(append(waiting, newJob("small"))...))
	w.run(time.Minute)
	w.wantReason(jobAddr("small"), "reserved for job.big, which has waited")
}

// Who waits for services, which do not end, is waited for by no unit; nor are the
// children of what runs delayed.
func TestNothingIsReservedForEver(t *testing.T) {
	service := newJob("s", asService)
	big, small := newJob("big", onSlices(2)), newJob("small")
	w := newWorld(t)
	w.accept(limited(configuration(service), 2))
	w.settle(time.Minute)
	w.accept(limited(configuration(service, big), 2))
	w.pass(schedule.Patience + time.Minute)
	w.accept(limited(configuration(service, big, small), 2))
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.job(small.Addr).Ready })
}

func TestSemantics14OrderIsExplained(t *testing.T) {
	w := newWorld(t)
	var jobs []schema.Job
	for i := range 6 {
		jobs = append(jobs, newJob("a", instance(i)))
	}
	w.accept(limited(configuration(jobs...), 1))
	w.settleButWaiting(time.Minute)
	w.wantReason(jobs[1].Addr, "provider local: needs 1 more slice, 1 of 1 are in use")
	w.wantReason(jobs[3].Addr, "behind 2 others: job.a[1], job.a[2]")
	w.wantReason(jobs[5].Addr, "behind 4 others: job.a[1], job.a[2], job.a[3], …")
}

// settleButWaiting steps until only waiting is left.
func (w *world) settleButWaiting(within time.Duration) {
	w.t.Helper()
	calm := 0
	w.until(within, "at rest", func(p *plan.Plan) bool {
		calm++
		if !p.Empty() {
			calm = 0
		}
		return calm == 3
	})
}
