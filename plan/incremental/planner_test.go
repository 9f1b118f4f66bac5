package incremental

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// planned is what a Planner makes of the world. It must be what Diff makes of
// it, and the document that it is given must stay as it is.
func (o *oracle) planned(planner *Planner, obs *plan.Observed) *plan.Plan {
	w := o.w
	w.t.Helper()
	if planner.last == w.doc {
		o.parts++
	}
	o.checkUnlisted(planner, w.doc, o.listed) // also after actions were folded into it
	before, last, pending, changes := w.doc.Clone(), planner.plan, []plan.Pending(nil), []plan.Change(nil)
	if last != nil {
		pending, changes = slices.Clone(last.Pending), slices.Clone(last.Changes)
	}
	want := reconcile.Diff(&w.doc.Desired, w.doc, obs, w.now)
	var edits state.Edits
	edits.Begin(w.doc)
	planner.Edits = []*state.Edits{&edits}
	got := planner.Diff(&w.doc.Desired, w.doc, obs, w.now)
	checkEdits(w.t, &edits, w.doc, got.Next)
	if len(planner.turns.passed) > 0 { // what stands is asked for last, and looked at again soon
		o.passed++
		ordered(want)
		ordered(got)
		want.Wake = got.Wake
	}
	o.listed = obs.Listed()
	o.checkUnlisted(planner, got.Next, o.listed)
	if diff := differences(want, got); diff != "" {
		w.t.Fatalf("a Planner finds another plan (-Diff +Planner)\n%s\n%s", diff, w.describe())
	}
	if (want.Next == w.doc) != (got.Next == w.doc) {
		w.t.Fatalf("Next is the given document: Diff says %v, a Planner %v\n%s", want.Next == w.doc, got.Next == w.doc, w.describe())
	}
	if diff := differences(before, w.doc); diff != "" {
		w.t.Fatalf("a Planner changed the document that it was given (-was +is)\n%s", diff)
	}
	if last != nil && differences(pending, last.Pending)+differences(changes, last.Changes) != "" {
		w.t.Fatalf("a Planner changed its last plan\n%s%s", differences(pending, last.Pending), differences(changes, last.Changes))
	}
	return got
}

// ordered puts the actions of a plan in an order of their own.
func ordered(p *plan.Plan) {
	p.Actions = slices.SortedFunc(slices.Values(p.Actions), func(a, b plan.Action) int {
		return strings.Compare(a.Slice.Name+string(a.Verb), b.Slice.Name+string(b.Verb))
	})
}

// checkUnlisted has it be right which recorded slices are not listed, if that is known.
func (o *oracle) checkUnlisted(planner *Planner, doc *state.Document, listed map[string]bool) {
	o.w.t.Helper()
	unlisted, known := planner.Unlisted(doc)
	for name := range doc.Slices {
		if known && unlisted[name] == listed[name] {
			o.w.t.Fatalf("slice %s: a Planner finds it unlisted: %t, listed is %t\n%s", name, unlisted[name], listed[name], o.w.describe())
		}
	}
}

// checkEdits has edits be in what two documents differ, if they are known.
func checkEdits(t tester, edits *state.Edits, was, is *state.Document) {
	t.Helper()
	if !edits.Cover(was, is) {
		return
	}
	all := func(edits *state.Edits) (all []string) {
		edits.Differences(was, is,
			func(addr schema.Address, was, is *state.Job) {
				all = append(all, fmt.Sprintf("job %s %p %p", addr, was, is))
			},
			func(name string, was, is *state.Slice) {
				all = append(all, fmt.Sprintf("slice %s %p %p", name, was, is))
			})
		slices.Sort(all)
		return all
	}
	if got, want := all(edits), all(&state.Edits{}); !slices.Equal(got, want) {
		t.Fatalf("a Planner notes the edits %v, want %v", got, want)
	}
}

// differences is cmp.Diff, after a quicker look.
func differences[T any](a, b T) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return cmp.Diff(a, b, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b schema.Address) bool { return a == b }),
		cmp.Comparer(func(a, b schema.Text) bool { return a == b }))
}

// drawNetwork makes a configuration of jobs that are tied by nothing but
// dependencies, on instances and on all of a block.
func drawNetwork(t *rapid.T) schema.Desired {
	var jobs []schema.Job
	for i := range rapid.IntRange(2, 12).Draw(t, "jobs") {
		j := newJob(fmt.Sprintf("n%d", i/3), instance(i%3), failures(rapid.SampledFrom([]int{0, 2}).Draw(t, "failures")))
		if rapid.IntRange(0, 5).Draw(t, "service") == 0 {
			j = newJob(fmt.Sprintf("s%d", i), instance(0), asService)
		}
		if len(jobs) > 0 && rapid.IntRange(0, 3).Draw(t, "free") > 0 {
			for range rapid.IntRange(1, 2).Draw(t, "edges") {
				on := rapid.SampledFrom(jobs).Draw(t, "on").Addr
				if on.Name != j.Addr.Name && rapid.Bool().Draw(t, "all") {
					on = on.Base()
				}
				if rapid.Bool().Draw(t, "uses") {
					using(on)(&j)
				} else {
					after(on)(&j)
				}
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "shape") == 0 {
			j.Resources.Slices = 2
		}
		if rapid.IntRange(0, 4).Draw(t, "healthy") == 0 {
			healthy(&j)
		}
		j.Lifecycle = drawLifecycle(t, jobs)
		drawStanding(t, &j)
		jobs = append(jobs, j)
	}
	drawSchedules(t, jobs)
	desired := drawSpaces(t, configuration(jobs...))
	if rapid.IntRange(0, 1).Draw(t, "limit") == 0 {
		desired = limited(desired, 4)
	}
	return desired
}

// drawSchedules gives a schedule to some of the jobs for which none waits.
func drawSchedules(t *rapid.T, jobs []schema.Job) {
	needed := map[schema.Address]bool{}
	for i := range jobs {
		for _, on := range slices.Concat(jobs[i].DependsOn, jobs[i].Uses) {
			needed[on], needed[on.Base()] = true, true
		}
	}
	for i := range jobs {
		j := &jobs[i]
		if j.IsService() || j.Addr.Group != "" || needed[j.Addr] || needed[j.Addr.Base()] || rapid.IntRange(0, 1).Draw(t, "scheduled") == 0 {
			continue
		}
		j.Lifecycle.CreateBeforeDestroy = false
		j.Schedule = drawSchedule(t)
	}
}

func drawSchedule(t *rapid.T) *schema.Schedule {
	return &schema.Schedule{
		Cron:             rapid.SampledFrom([]string{"* * * * *", "*/2 * * * *", "5 3 * * *"}).Draw(t, "cron"),
		Timezone:         rapid.SampledFrom([]string{"", "Asia/Kathmandu"}).Draw(t, "zone"),
		Overlap:          rapid.SampledFrom([]schema.Overlap{schema.OverlapSkip, schema.OverlapWait, schema.OverlapReplace}).Draw(t, "overlap"),
		Missed:           rapid.SampledFrom([]schema.Missed{schema.MissedSkip, schema.MissedOnce, schema.MissedAll}).Draw(t, "missed"),
		StartingDeadline: rapid.SampledFrom([]schema.Duration{0, schema.Duration(2 * time.Minute)}).Draw(t, "deadline"),
		Suspend:          rapid.IntRange(0, 5).Draw(t, "suspend") == 0,
	}
}

// drawStanding says where a job stands among those that want the same.
func drawStanding(t *rapid.T, j *schema.Job) {
	j.Band = rapid.SampledFrom([]schema.Band{"", schema.BandProduction, schema.BandBatch}).Draw(t, "band")
	j.Priority = rapid.IntRange(0, 1).Draw(t, "priority")
	j.Namespace = rapid.SampledFrom([]string{"default", "one", "two"}).Draw(t, "namespace")
	j.User = rapid.SampledFrom([]string{"", "", "ann"}).Draw(t, "user")
	if rapid.IntRange(0, 9).Draw(t, "timeout") == 0 {
		j.SchedulingTimeout = schema.Duration(30 * time.Second)
	}
}

// drawSpaces declares the namespaces, with limits that every job fits into.
func drawSpaces(t *rapid.T, desired schema.Desired) schema.Desired {
	return withSpaces(desired,
		newSpace("one", func(n *schema.Namespace) {
			n.MaxCPU = float64(rapid.SampledFrom([]int{0, 2, 3}).Draw(t, "max"))
			n.Users = []schema.UserShare{{Name: "ann", MaxCPU: 2}}
		}),
		newSpace("two", func(n *schema.Namespace) {
			n.Weight = float64(rapid.IntRange(1, 3).Draw(t, "weight"))
			n.Budget = rapid.SampledFrom([]int{0, 8}).Draw(t, "budget")
		}))
}

// fewSteps are as many as say nothing of what is drawn: those of a few worlds, as when one is drawn again.
const fewSteps = 600

// The world's own property test compares too; here most steps are those in which
// a Planner passes something over.
func TestPlannerFindsWhatDiffFinds(t *testing.T) {
	parts, steps, refined := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.wayward = true
		w.program = drawPrograms(t)
		w.accept(drawNetwork(t))
		for range rapid.IntRange(0, 40).Draw(t, "faults") {
			if rapid.IntRange(0, 3).Draw(t, "calm") == 0 {
				fault(t, w)
			}
			if rapid.IntRange(0, 3).Draw(t, "refined") == 0 && refine(t, w) {
				refined++
			}
			w.step(time.Duration(rapid.SampledFrom([]int{40, 500, 3000}).Draw(t, "ms")) * time.Millisecond)
			steps++
		}
		parts += w.oracle.parts
	})
	if steps > fewSteps && parts < steps/3 {
		t.Errorf("%d of %d steps passed something over; the test shows little", parts, steps)
	}
	if steps > fewSteps && refined < steps/20 {
		t.Errorf("%d of %d steps passed something over with new values; the test shows little", refined, steps)
	}
}

// refine gives some jobs other commands, known or not, and reports whether the
// next plan need not look at everything for it.
func refine(t *rapid.T, w *world) bool {
	desired := w.doc.Desired
	desired.Jobs = slices.Clone(desired.Jobs)
	for range min(len(desired.Jobs), rapid.IntRange(0, 2).Draw(t, "values")) {
		word := rapid.SampledFrom([]schema.Text{schema.UnknownText(), schema.Plain("1"), schema.Plain("2")}).Draw(t, "value")
		desired.Jobs[rapid.IntRange(0, len(desired.Jobs)-1).Draw(t, "reader")].Command = []schema.Text{schema.Plain("x"), word}
	}
	before := w.doc
	want := change.Accepted(before, desired)
	w.doc = w.planner.Refined(before, &desired)
	if diff := differences(want, w.doc); diff != "" {
		t.Fatalf("the refined document (-want +got):\n%s", diff)
	}
	return w.planner.last == w.doc
}

// TestRefinedLooksAtAllThatIsNew: what is more than other words is not passed over.
func TestRefinedLooksAtAllThatIsNew(t *testing.T) {
	tests := map[string]struct {
		change func(*schema.Desired)
		part   bool
	}{
		"a command":     {func(d *schema.Desired) { d.Jobs[0].Command = []schema.Text{schema.Plain("y")} }, true},
		"a variable":    {func(d *schema.Desired) { d.Jobs[0].Environment.Env = map[string]schema.Text{"A": schema.Plain("y")} }, true},
		"a priority":    {func(d *schema.Desired) { d.Jobs[0].Priority++ }, false},
		"a job less":    {func(d *schema.Desired) { d.Jobs = d.Jobs[1:] }, false},
		"a namespace":   {func(d *schema.Desired) { d.Namespaces = []schema.Namespace{{}} }, false},
		"a group":       {func(d *schema.Desired) { d.Groups = []schema.JobGroup{{}} }, false},
		"a reservation": {func(d *schema.Desired) { d.Reservations = []schema.Reservation{{}} }, false},
		"a limit":       {func(d *schema.Desired) { *d = limited(*d, 1) }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.accept(configuration(newJob("a"), newJob("b", after(jobAddr("a")))))
			w.step(time.Second)
			w.step(time.Second)
			if w.planner.last != w.doc {
				t.Fatal("everything is looked at without a change")
			}
			desired := w.doc.Desired
			desired.Jobs = slices.Clone(desired.Jobs)
			tt.change(&desired)
			w.doc = w.planner.Refined(w.doc, &desired)
			if got := w.planner.last == w.doc; got != tt.part {
				t.Errorf("something is passed over: %t, want %t", got, tt.part)
			}
		})
	}
}

// TestTakenOverSpecIsItsOwn: a record does not hold on to all jobs of the
// configuration that it came with.
func TestTakenOverSpecIsItsOwn(t *testing.T) {
	w := newWorld(t)
	w.accept(configuration(newJob("a")))
	w.step(time.Second)
	next := newJob("a")
	next.Labels = map[string]string{"new": "yes"}
	w.accept(configuration(next))
	w.step(time.Second)
	if got := w.job(jobAddr("a")).Spec; got.Labels["new"] != "yes" || got == &w.doc.Desired.Jobs[0] {
		t.Errorf("the spec is %v, at %p; want a copy of that at %p", got.Labels, got, &w.doc.Desired.Jobs[0])
	}
}

// chainOf is a chain of n jobs.
func chainOf(n int) schema.Desired {
	var jobs []schema.Job
	for i := range n {
		j := newJob("link", instance(i))
		if i > 0 {
			after(jobs[i-1].Addr)(&j)
		}
		jobs = append(jobs, j)
	}
	return configuration(jobs...)
}

// What is done and what waits costs nothing: of a long chain, a Planner looks at
// no more than a few links at a time, and changes as many entries.
func TestPlannerLooksAtWhatGoesOn(t *testing.T) {
	const n = 60
	w := newWorld(t)
	w.program = func(*state.Run, int) program { return program{runs: time.Second} }
	w.accept(chainOf(n))
	w.step(time.Second)
	w.step(time.Second)
	most := 0
	for ended := 0; ended < n; {
		w.step(500 * time.Millisecond)
		most = max(most, len(w.planner.dirty))
		if w.planner.last == nil {
			t.Fatal("a chain is looked at whole")
		}
		ended = 0
		for _, j := range w.doc.Jobs {
			if j.Status.Ended() {
				ended++
			}
		}
	}
	if most > 8 {
		t.Errorf("looks at up to %d of %d links, want a few", most, n)
	}
}

// A job that waits is looked at again when an assignment says that it was
// started, by a step that did not live to record it.
func TestPlannerNoticesUnrecordedAttempt(t *testing.T) {
	a, b := jobAddr("a"), jobAddr("b")
	w := newWorld(t)
	w.accept(configuration(newJob("a"), newJob("b", after(a))))
	w.run(10 * time.Second)
	waiting := w.job(b)
	if len(waiting.Slices) > 0 || w.planner.last != w.doc {
		t.Fatalf("b holds %v", waiting.Slices)
	}
	w.assignments["elsewhere"] = plan.Assigned{Assignment: state.Assignment{
		Slice: "elsewhere", Generation: 1,
		Run: &state.Run{Job: b, JobID: waiting.ID, Attempt: 1, Spec: *waiting.Spec, Digest: waiting.Digest, Peers: []state.Peer{{Slice: "elsewhere"}}},
	}, Object: 1}
	w.step(time.Second)
	if got := w.job(b).Attempt; got != 1 {
		t.Errorf("attempt %d, want the one that was found", got)
	}
}

// Another document in the place of the last one is believed.
func TestPlannerTakesWhatItIsGiven(t *testing.T) {
	a := jobAddr("a")
	w := newWorld(t)
	w.exits(a, program{runs: time.Second})
	w.accept(configuration(newJob("a"), newJob("b", after(a))))
	w.settle(time.Minute)
	w.mark(a, func(j *state.Job) { j.Replace = true })
	p := w.step(time.Second)
	if i := slices.IndexFunc(p.Changes, func(c plan.Change) bool { return c.Addr == a }); p.Changes[i].Verb != plan.VerbReplace {
		t.Errorf("a: got %s, want %s", p.Changes[i].Verb, plan.VerbReplace)
	}
}

// Who depends on a job must be looked at again when what they are told of it
// changes.
func TestSameToOthersIsWhatTheyAreTold(t *testing.T) {
	plain, checked := newJob("a"), newJob("a", healthy)
	var records []state.Job
	for _, spec := range []*schema.Job{&plain, &checked} {
		records = append(records,
			state.Job{Spec: spec, Status: schema.JobPending}, state.Job{Spec: spec, Status: schema.JobPending, Reason: "r"}, state.Job{Spec: spec, Status: schema.JobRunning},
			state.Job{Spec: spec, Status: schema.JobRunning, Ready: true}, state.Job{Spec: spec, Status: schema.JobSucceeded}, state.Job{Spec: spec, Status: schema.JobFailed, Reason: "r"},
			state.Job{Spec: spec, Status: schema.JobFailed, Reason: "s"}, state.Job{Spec: spec, Status: schema.JobStopped, Reason: "r"})
	}
	for i := range records {
		for k := range records {
			a, b := &records[i], &records[k]
			for _, dep := range []lifecycle.Dependency{{}, {Ready: true}, {Again: true}} {
				if told := dep.State(a.Spec, a) == dep.State(b.Spec, b); !told && sameToOthers(a, b) {
					t.Errorf("%+v of %+v and %+v: they are the same to others, but not what %+v is told", dep, a, b, dep)
				}
			}
		}
	}
}

// A job that is ended to make room changes after its dependents were
// looked at: they are told in the next look.
func TestWhoWaitsForAVictimIsToldByAPlanner(t *testing.T) {
	w := newWorld(t)
	w.exits(jobAddr("first"), program{runs: time.Minute})
	w.accept(limited(configuration(
		newJob("big", inBand(schema.BandProduction), onSlices(2), after(jobAddr("first"))),
		newJob("first"),
		newJob("low", inBand(schema.BandBatch)),
		newJob("never", inBand(schema.BandBatch)),
		newJob("waiter", using(jobAddr("low"), jobAddr("never"))),
	), 2))
	w.run(30 * time.Second)
	w.wantWaits(jobAddr("waiter"), "waits for job.never to be ready")
	w.run(3 * time.Minute) // each step compares a Planner's plan with Diff's
	w.wantJob(jobAddr("big"), schema.JobRunning, 1, 0, 0)
	w.wantWaits(jobAddr("waiter"), "waits for job.low to be ready")
}
