package incremental

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// wantBlocked checks which changes a plan blocks, and that it shows them.
func wantRejections(t *testing.T, p *plan.Plan, all map[schema.Address]plan.BlockedChange) {
	t.Helper()
	if len(p.Blocked) != len(all) {
		t.Fatalf("got %+v, want %+v", p.Blocked, all)
	}
	for _, r := range p.Blocked {
		want := all[r.Addr]
		if r.Verb != want.Verb || r.By != want.By || !strings.Contains(r.Detail, want.Detail) {
			t.Errorf("got %+v, want %+v", r, want)
		}
		if shown := changeOn(p, r.Addr); shown.Verb != r.Verb || len(shown.Attrs) == 0 {
			t.Errorf("%s: the plan shows %+v, want what is refused", r.Addr, shown)
		}
	}
}

// TestProtectedIsKept: whatever would destroy something protected is shown,
// refused, and not done, while everything else is.
func TestProtectedIsKept(t *testing.T) {
	a, pool := jobAddr("a"), newPool("p", "v5litepod-4", 2)
	pool.Lifecycle.PreventDestroy = true
	reshaped := newPool("p", "v5litepod-16", 2)
	reshaped.Lifecycle.PreventDestroy = true
	start := withPools(configuration(newJob("a", protected), newJob("drawer", from("p")), newJob("other")), pool)
	asks := func(j *state.Job) { j.Replace = true }
	for name, c := range map[string]struct {
		desired schema.Desired
		mark    func(*state.Job)
		want    map[schema.Address]plan.BlockedChange
	}{
		"another shape": {
			desired: withPools(configuration(newJob("a", protected, onTPU("v5litepod-8")), newJob("drawer", from("p"))), pool),
			want:    map[schema.Address]plan.BlockedChange{a: {Verb: plan.VerbReplace, By: lifecycle.ByFiles, Detail: "resources.tpu"}},
		},
		"--replace": {
			desired: start, mark: asks,
			want: map[schema.Address]plan.BlockedChange{a: {Verb: plan.VerbReplace, By: lifecycle.ByFiles, Detail: "--replace"}},
		},
		"--replace of what the block is gone from": {
			desired: configuration(), mark: asks,
			want: map[schema.Address]plan.BlockedChange{
				a:         {Verb: plan.VerbDelete, By: lifecycle.ByState, Detail: "prevent_destroy = false"},
				pool.Addr: {Verb: plan.VerbDelete, By: lifecycle.ByState, Detail: "destroy = false"},
			},
		},
		"not declared any more": {
			desired: withPools(configuration(newJob("drawer", from("p"))), pool),
			want:    map[schema.Address]plan.BlockedChange{a: {Verb: plan.VerbDelete, By: lifecycle.ByState, Detail: "fray state rm job.a"}},
		},
		"a reservation of another shape": {
			desired: withPools(configuration(newJob("a", protected), newJob("drawer", from("p"))), reshaped),
			want:    map[schema.Address]plan.BlockedChange{pool.Addr: {Verb: plan.VerbReplace, By: lifecycle.ByFiles, Detail: "min.tpu"}},
		},
		"everything destroyed": {
			want: map[schema.Address]plan.BlockedChange{a: {Verb: plan.VerbDelete, By: lifecycle.ByState}, pool.Addr: {Verb: plan.VerbDelete, By: lifecycle.ByState}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, start)
			protectedSlices := map[string]*simSlice{w.sliceOf(a, 0): nil}
			for slice, s := range w.slices {
				if _, mine := protectedSlices[slice]; mine || s.spec.Owner == pool.Addr {
					protectedSlices[slice] = s
				}
			}
			w.acceptWith(c.desired, func(doc *state.Document) {
				if c.mark != nil {
					j := *doc.Jobs[a]
					c.mark(&j)
					doc.Jobs[a] = &j
				}
			})
			wantRejections(t, w.step(time.Second), c.want)
			w.run(time.Minute)
			w.wantJob(a, schema.JobRunning, 1, 0, 0)
			for slice, s := range protectedSlices {
				if w.slices[slice] != s {
					t.Errorf("slice %s was destroyed", slice)
				}
			}
			if _, left := w.doc.Jobs[jobAddr("other")]; left != slices.ContainsFunc(c.desired.Jobs, func(j schema.Job) bool { return j.Addr == jobAddr("other") }) {
				t.Errorf("job.other is left: %t; what is not protected is not as asked for", left)
			}
		})
	}
}

// What is protected is looked after like anything else, also when the files say
// nothing of it any more: a lost slice is made again.
func TestProtectedRecovers(t *testing.T) {
	for name, desired := range map[string]schema.Desired{
		"declared":   configuration(newJob("a", protected, onTPU("v5litepod-4"))),
		"undeclared": configuration(),
		"reshaped":   configuration(newJob("a", protected, onTPU("v5litepod-8"))),
	} {
		t.Run(name, func(t *testing.T) {
			a := jobAddr("a")
			w := up(t, configuration(newJob("a", protected, onTPU("v5litepod-4"))))
			w.accept(desired)
			w.preempt(w.sliceOf(a, 0))
			w.run(time.Minute)
			w.wantJob(a, schema.JobRunning, 2, 0, 1)
			if got := w.slices[w.sliceOf(a, 0)].spec.TPU; got != "v5litepod-4" {
				t.Errorf("its slice is %s, want v5litepod-4", got)
			}
		})
	}
}

// Members of a group go on in it when only they are protected.
func TestProtectedMemberKeepsItsGroup(t *testing.T) {
	kept := memberAddr("g", "kept")
	w := up(t, configuration(newJob("kept", inGroup("g"), protected), newJob("gone", inGroup("g"))))
	w.accept(schema.Desired{})
	w.run(time.Minute)
	w.wantJob(kept, schema.JobRunning, 1, 0, 0)
	if _, there := w.doc.Resources[kept.GroupAddress()]; !there || len(w.doc.Jobs) != 1 {
		t.Errorf("the group is there: %t; jobs: %d; want true and one", there, len(w.doc.Jobs))
	}
}

// TestProtectedMayChange: what destroys nothing is not refused.
func TestProtectedMayChange(t *testing.T) {
	a := jobAddr("a")
	pool := newPool("p", "", 3)
	pool.Lifecycle.PreventDestroy = true
	smaller := newPool("p", "", 1)
	smaller.Lifecycle.PreventDestroy = true
	for name, c := range map[string]struct {
		desired schema.Desired
		gone    bool
	}{
		"a restart":                    {withPools(configuration(newJob("a", protected, withEnv("A", "b"))), pool), false},
		"a smaller reservation":        {withPools(configuration(newJob("a", protected)), smaller), false},
		"replaced, as the files allow": {withPools(configuration(newJob("a", onTPU("v5litepod-4"))), pool), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, withPools(configuration(newJob("a", protected)), pool))
			w.accept(c.desired)
			if p := w.step(time.Second); len(p.Blocked) > 0 {
				t.Errorf("refused: %+v", p.Blocked)
			}
			w.settle(time.Minute)
			if n := c.desired.Reservations[0].Min.Slices; len(w.doc.Slices) != n+1 {
				t.Errorf("%d slices are there, want %d of the pool and one", len(w.doc.Slices), n)
			}
			if j := w.job(a); !schema.EqualJobs(j.Spec, &c.desired.Jobs[0]) || !j.Ready {
				t.Errorf("the job is not as declared: %+v", j.Spec)
			}
		})
	}
	w := up(t, withPools(configuration(newJob("a", protected)), pool))
	w.accept(withPools(configuration(newJob("a")), newPool("p", "", 3)))
	w.step(time.Second)
	w.accept(schema.Desired{})
	w.settle(time.Minute)
	if len(w.doc.Jobs)+len(w.doc.Resources) > 0 {
		t.Errorf("left: %v, %v", w.doc.Jobs, w.doc.Resources)
	}
}

// What was never given anything may change as it likes.
func TestProtectedBeforeItIsThere(t *testing.T) {
	a := jobAddr("a")
	w := newWorld(t)
	w.capacity = 1 // the foreign slice's
	w.accept(configuration(newJob("a", protected, onTPU("v5litepod-16"))))
	w.run(5 * time.Second)
	w.accept(configuration(newJob("a", protected)))
	if p := w.step(time.Second); len(p.Blocked) > 0 {
		t.Errorf("refused: %+v", p.Blocked)
	}
	w.capacity = 0
	w.settle(10 * time.Minute)
	w.wantJob(a, schema.JobRunning, 1, 0, 0)
}

// A state that was lost and a job that is found running: it is protected as declared.
func TestProtectedIsFoundRunning(t *testing.T) {
	a := jobAddr("a")
	w := up(t, configuration(newJob("a", protected)))
	slice := w.slices[w.sliceOf(a, 0)]
	w.doc = &state.Document{FormatVersion: state.FormatVersion, Lineage: testLineage}
	w.accept(configuration(newJob("a", protected, onTPU("v5litepod-8"))))
	w.run(30 * time.Second)
	w.wantJob(a, schema.JobRunning, 1, 0, 0)
	if w.slices[slice.spec.Name] != slice || len(w.last.Blocked) != 1 {
		t.Errorf("the slice is the same: %t, blocked changes: %+v", w.slices[slice.spec.Name] == slice, w.last.Blocked)
	}
}

// An attempt of another shape that is found, of a protected job which was passed
// over, is kept.
func TestPlannerKeepsWhatItFinds(t *testing.T) {
	a, b := jobAddr("a"), jobAddr("b")
	w := newWorld(t)
	w.accept(configuration(newJob("a"), newJob("b", after(a), protected)))
	w.run(10 * time.Second)
	waiting := w.job(b)
	if len(waiting.Slices) > 0 || w.planner.last != w.doc {
		t.Fatalf("b holds %v", waiting.Slices)
	}
	spec := *waiting.Spec
	onTPU("v5litepod-4")(&spec)
	w.assignments["elsewhere"] = plan.Assigned{Assignment: state.Assignment{
		Slice: "elsewhere", Generation: 1,
		Run: &state.Run{Job: b, JobID: waiting.ID, Attempt: 1, Spec: spec, Digest: "v1:other", Peers: []state.Peer{{Slice: "elsewhere"}}},
	}, Object: 1}
	if p := w.step(time.Second); len(p.Blocked) != 1 {
		t.Errorf("blocked changes: %+v, want one of b", p.Blocked)
	}
}

// A Planner looks at everything as long as something is refused, and passes over
// what is quiet as before when nothing is.
func TestPlannerWithProtectedJobs(t *testing.T) {
	w := newWorld(t)
	w.accept(configuration(newJob("a", protected), newJob("b", after(jobAddr("a")))))
	w.step(time.Second)
	w.step(time.Second)
	if w.planner.last != w.doc {
		t.Error("everything is looked at although nothing is refused")
	}
	w.run(10 * time.Second)
	w.accept(configuration(newJob("a", protected, onTPU("v5litepod-8")), newJob("b", after(jobAddr("a")))))
	w.step(time.Second)
	w.step(time.Second)
	if w.planner.last != nil {
		t.Error("something is passed over although something is refused")
	}
}
