package incremental

import (
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// empty fails unless nothing of the stack is left.
func (w *world) empty() {
	w.t.Helper()
	if len(w.doc.Jobs)+len(w.doc.Slices)+len(w.doc.Resources)+len(w.assignments)+len(w.reports) > 0 || len(w.slices) != 1 {
		w.t.Fatalf("something is left\n%s", w.describe())
	}
}

func TestRemovalLeavesNothing(t *testing.T) {
	group := configuration(newJob("a", inGroup("g")), newJob("b", inGroup("g"), after(memberAddr("g", "a"))))
	for name, c := range map[string]struct {
		desired schema.Desired
		before  func(*world)
	}{
		"running":              {configuration(newJob("a", onTPU("v5litepod-16"), onSlices(2))), func(w *world) { w.run(20 * time.Second) }},
		"group":                {group, func(w *world) { w.run(20 * time.Second) }},
		"pool in use":          {withPools(configuration(newJob("a", from("p"))), newPool("p", "", 2)), func(w *world) { w.run(20 * time.Second) }},
		"at once":              {configuration(newJob("a")), func(*world) {}},
		"just asked for":       {configuration(newJob("a")), func(w *world) { w.step(time.Millisecond) }},
		"never came up":        {configuration(newJob("a", onSlices(2))), func(w *world) { w.capacity = 1; w.run(20 * time.Second) }},
		"pool never came up":   {withPools(configuration(newJob("a", from("p"))), newPool("p", "", 2)), func(w *world) { w.capacity = 2; w.run(5 * time.Second) }},
		"waits for a retry":    {configuration(newJob("a", failures(5))), func(w *world) { w.exits(jobAddr("a"), program{runs: time.Second, code: 1}); w.run(9 * time.Second) }},
		"stopped":              {configuration(newJob("a")), func(w *world) { w.run(9 * time.Second); w.mark(jobAddr("a"), func(j *state.Job) { j.Stop = true }) }},
		"failed":               {configuration(newJob("a")), func(w *world) { w.exits(jobAddr("a"), program{runs: time.Second, code: 1}); w.run(20 * time.Second) }},
		"dead slice":           {configuration(newJob("a")), func(w *world) { w.run(9 * time.Second); w.preempt(w.sliceOf(jobAddr("a"), 0)) }},
		"slice gone":           {configuration(newJob("a")), func(w *world) { w.run(9 * time.Second); w.vanish(w.sliceOf(jobAddr("a"), 0)) }},
		"crashed on the way":   {configuration(newJob("a")), func(w *world) { w.step(time.Millisecond); w.step(time.Millisecond); w.crash() }},
		"agent down, pool":     {withPools(configuration(newJob("a", from("p"))), newPool("p", "", 1)), func(w *world) { w.run(9 * time.Second); w.killAgent(w.sliceOf(jobAddr("a"), 0), 0) }},
		"depend on each other": {group, func(w *world) { w.run(9 * time.Second); dependBack(w) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.accept(c.desired)
			c.before(w)
			w.capacity = 0
			w.accept(schema.Desired{})
			w.settle(2 * time.Minute)
			w.empty()
		})
	}
}

// dependBack makes a recorded job depend on its dependent, as a state may that
// was put together from several targeted plans.
func dependBack(w *world) {
	a := *w.doc.Jobs[memberAddr("g", "a")]
	spec := *a.Spec
	spec.DependsOn = []schema.Address{memberAddr("g", "b")}
	a.Spec = &spec
	doc := w.doc.Clone()
	doc.Jobs[memberAddr("g", "a")] = &a
	w.doc = doc
}

func TestRemovalWaitsForDependents(t *testing.T) {
	w := up(t, configuration(newJob("a", healthy), newJob("b", after(jobAddr("a"))), newJob("c", using(jobAddr("b")))))
	w.accept(schema.Desired{})
	var order []string
	for range 100 {
		w.step(500 * time.Millisecond)
		for _, name := range []string{"a", "b", "c"} {
			if w.doc.Jobs[jobAddr(name)] == nil && !strings.Contains(strings.Join(order, ""), name) {
				order = append(order, name)
			}
		}
	}
	if got := strings.Join(order, " "); got != "c b a" {
		t.Errorf("order of removal: got %q, want %q", got, "c b a")
	}
	w.empty()
}

func TestFewerInstances(t *testing.T) {
	w := up(t, manyJobs(4))
	kept := w.slices[w.sliceOf(schema.Address{Kind: schema.KindJob, Name: "rollout", Key: schema.IntKey(1)}, 0)]
	w.accept(manyJobs(2))
	w.settle(time.Minute)
	if len(w.doc.Jobs) != 2 || len(w.slices) != 3 || w.slices[kept.spec.Name] != kept {
		t.Errorf("got %d jobs on %d slices\n%s", len(w.doc.Jobs), len(w.slices), w.describe())
	}
}

func TestMovedIntoAGroup(t *testing.T) {
	w := up(t, configuration(newJob("a")))
	w.accept(configuration(newJob("a", inGroup("g"))))
	w.settle(time.Minute)
	w.wantJob(memberAddr("g", "a"), schema.JobRunning, 1, 0, 0)
	if len(w.doc.Jobs) != 1 || len(w.slices) != 2 {
		t.Errorf("the job outside of the group is left\n%s", w.describe())
	}
}

// A job that is deleted and declared again counts its attempts from 1, and its
// slice or its pool's has the same name: nothing that its namesake left may
// pass for its own.
func TestDeclaredAgainAfterDeletion(t *testing.T) {
	for name, desired := range map[string]schema.Desired{
		"own slice": configuration(newJob("a")),
		"pool":      withPools(configuration(newJob("a", from("p"))), newPool("p", "", 1)),
	} {
		t.Run(name, func(t *testing.T) {
			a := jobAddr("a")
			w := newWorld(t)
			runs := program{runs: 3 * time.Second}
			w.program = func(*state.Run, int) program { return runs }
			w.accept(desired)
			w.settle(time.Minute)
			first := w.job(a).ID
			w.wantJob(a, schema.JobSucceeded, 1, 0, 0)
			gone := desired
			gone.Jobs = nil
			w.accept(gone)
			w.until(time.Minute, "gone", func(*plan.Plan) bool { return w.doc.Jobs[a] == nil })
			runs = program{}
			w.accept(desired)
			w.settle(time.Minute)
			w.wantJob(a, schema.JobRunning, 1, 0, 0)
			if w.job(a).ID == first {
				t.Error("the new job has the old one's id")
			}
		})
	}
}

func TestPoolShrinksAroundItsJobs(t *testing.T) {
	desired := func(n int) schema.Desired {
		return withPools(configuration(newJob("a", from("p")), newJob("b", from("p"))), newPool("p", "", n))
	}
	w := up(t, desired(3))
	w.accept(desired(1))
	w.run(20 * time.Second)
	// Both jobs go on; the third slice is gone, and the second is still used.
	w.wantJob(jobAddr("a"), schema.JobRunning, 1, 0, 0)
	w.wantJob(jobAddr("b"), schema.JobRunning, 1, 0, 0)
	if len(w.slices) != 3 {
		t.Fatalf("got %d slices, want 2 and the foreign one\n%s", len(w.slices), w.describe())
	}
	w.mark(jobAddr("b"), func(j *state.Job) { j.Stop = true })
	w.settle(time.Minute)
	if len(w.slices) != 2 {
		t.Errorf("got %d slices, want 1 and the foreign one\n%s", len(w.slices), w.describe())
	}
}

func TestReplaceOfAJobOfAPoolKeepsThePool(t *testing.T) {
	a := jobAddr("a")
	w := up(t, withPools(configuration(newJob("a", from("p"), failures(3))), newPool("p", "", 2)))
	w.fail(w.sliceOf(a, 0), 0, 1)
	w.settle(time.Minute)
	w.wantJob(a, schema.JobRunning, 2, 1, 0)
	slice := w.slices[w.sliceOf(a, 0)]
	w.mark(a, func(j *state.Job) { j.Replace = true })
	w.settle(time.Minute)
	w.wantJob(a, schema.JobRunning, 3, 0, 0)
	if w.slices[slice.spec.Name] != slice {
		t.Error("the pool's slice was deleted")
	}
}

func TestStopOfWhatWaits(t *testing.T) {
	a := jobAddr("a")
	w := newWorld(t)
	w.capacity = 1 // taken by another stack
	w.accept(configuration(newJob("a"), newJob("b", after(a))))
	w.run(5 * time.Second)
	w.mark(a, func(j *state.Job) { j.Stop = true })
	w.run(5 * time.Second)
	w.wantJob(a, schema.JobStopped, 0, 0, 0)
	if got := w.job(jobAddr("b")).Reason; !strings.HasPrefix(got, "waits for job.a, which was stopped") {
		t.Errorf("b: got %q", got)
	}
	if len(w.doc.Slices) > 0 {
		t.Errorf("it still asks for slices: %+v", w.doc.Slices)
	}
}

func TestDependenciesOnOtherDeclarations(t *testing.T) {
	service := schema.Address{Kind: schema.KindActorService, Name: "s"}
	w := newWorld(t)
	w.exits(memberAddr("g", "a"), program{runs: 2 * time.Second})
	w.exits(memberAddr("g", "b"), program{runs: 20 * time.Second})
	replica := func(n int) schema.Job { return newJob("s", asService, instance(n)) }
	w.accept(configuration(
		newJob("a", inGroup("g")), newJob("b", inGroup("g")), replica(0), replica(1),
		newJob("x", after(schema.Address{Kind: schema.KindJobGroup, Name: "g"})), newJob("y", after(service)),
		newJob("z", after(schema.Address{Kind: schema.KindNamespace, Name: "n"}, schema.Address{Kind: schema.KindReservation, Name: "r"})),
	))
	w.until(time.Minute, "y and z up", func(*plan.Plan) bool { return w.job(jobAddr("y")).Ready && w.job(jobAddr("z")).Ready })
	w.wantJob(jobAddr("x"), schema.JobPending, 0, 0, 0)
	w.settle(2 * time.Minute)
	w.wantJob(jobAddr("x"), schema.JobRunning, 1, 0, 0)
}

// A replica that is not wanted any more is told, and its slice stays until it has
// finished; one whose host says nothing is not waited for.
func TestServiceDrainsBeforeItsSliceGoes(t *testing.T) {
	for name, dead := range map[string]bool{"at work": false, "dead": true} {
		t.Run(name, func(t *testing.T) {
			kept, spare := newJob("s", asService, instance(0)), newJob("s", asService, instance(1))
			w := up(t, configuration(kept, spare))
			w.stopTakes = 20 * time.Second
			slice := w.sliceOf(spare.Addr, 0)
			if dead {
				w.killHost(slice, 0)
			}
			w.accept(configuration(kept))
			asked := time.Duration(-1)
			for since := time.Duration(0); since < 2*time.Minute; since += 500 * time.Millisecond {
				w.step(500 * time.Millisecond)
				s := w.slices[slice]
				if s == nil {
					break
				}
				if s.phase == schema.SliceDeleting && asked < 0 {
					asked = since
					if len(w.liveTasks(spare.Addr)) > 0 {
						t.Errorf("the slice is deleted under its task\n%s", w.describe())
					}
				}
			}
			if asked < 0 || !dead && asked < w.stopTakes {
				t.Errorf("the slice was deleted after %s, and its task takes %s to end", asked, w.stopTakes)
			}
			w.settle(time.Minute)
			w.wantJob(kept.Addr, schema.JobRunning, 1, 0, 0)
			if len(w.doc.Jobs) != 1 || len(w.slices) != 2 { // one is another stack's
				t.Errorf("got %d jobs on %d slices, want one on two\n%s", len(w.doc.Jobs), len(w.slices), w.describe())
			}
		})
	}
}
