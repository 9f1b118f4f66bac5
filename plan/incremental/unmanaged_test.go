package incremental

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// letGo makes the state forget a job and disown its slices (amend.Remove does
// the same, and more).
func (w *world) letGo(addr schema.Address) []string {
	var names []string
	w.acceptWith(w.doc.Desired, func(doc *state.Document) {
		for _, name := range doc.Jobs[addr].Slices {
			doc.Unmanaged[name] = state.Unmanaged{Spec: doc.Slices[name].Spec, At: w.now}
			delete(doc.Slices, name)
			names = append(names, name)
		}
		delete(doc.Jobs, addr)
		doc.Desired.Jobs = slices.DeleteFunc(slices.Clone(doc.Desired.Jobs), func(j schema.Job) bool { return j.Addr == addr })
	})
	return names
}

// Whatever the faults: nothing is done to an unmanaged slice, and
// no other job is put on it.
func TestUnmanagedIsLeftAloneInAnyFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.wayward = true
		given := newJob("given", onTPU("v5litepod-16"))
		again := newJob("given", onTPU("v5litepod-8"))
		w.accept(configuration(given))
		w.until(time.Minute, "running", func(*plan.Plan) bool {
			j := w.doc.Jobs[given.Addr]
			return j != nil && j.Ready
		})
		unmanaged := w.letGo(given.Addr)
		desired := drawConfiguration(t)
		desired.Jobs = append(desired.Jobs, again)
		slices.SortFunc(desired.Jobs, func(a, b schema.Job) int { return a.Addr.Compare(b.Addr) })
		w.accept(desired)
		assigned := w.assignments[unmanaged[0]].Object
		w.loses = func(a plan.Action) bool {
			if slices.Contains(unmanaged, a.Slice.Name) {
				t.Fatalf("%s of %s, which is unmanaged", a.Verb, a.Slice.Name)
			}
			return false
		}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			w.step(time.Second)
			if rapid.IntRange(0, 3).Draw(t, "crash") == 0 {
				w.crash()
			}
		}
		if w.assignments[unmanaged[0]].Object != assigned || len(w.liveTasks(given.Addr)) < 4 {
			t.Fatalf("the task on %v was touched\n%s", unmanaged, w.describe())
		}
	})
}

// A step assigned an attempt of a job that is declared again, and died before
// it saved: that attempt is found, not the one that is unmanaged.
func TestAttemptOfAnUnmanagedSliceIsNotResumed(t *testing.T) {
	w := newWorld(t)
	given := newJob("given")
	w.accept(configuration(given))
	w.settle(time.Minute)
	w.vanish(w.sliceOf(given.Addr, 0))
	w.settle(time.Minute) // on its second attempt
	w.letGo(given.Addr)
	w.accept(configuration(given))
	obs := w.observe()
	made := plan.OwnSlice(w.doc.Stack(), &given, 1)
	inventory := obs.Inventories[schema.ProviderLocal]
	inventory.Slices = append(inventory.Slices, schema.SliceStatus{Spec: made, Phase: schema.SliceReady})
	obs.Inventories[schema.ProviderLocal] = inventory
	obs.Assignments[made.Name] = plan.Assigned{Assignment: state.Assignment{
		Slice: made.Name, Stack: made.Stack, Generation: 1,
		Run: &state.Run{Job: given.Addr, JobID: "new", Attempt: 1, Spec: given, Peers: []state.Peer{{Slice: made.Name}}},
	}}
	j := reconcile.Diff(&w.doc.Desired, w.doc, obs, w.now).Next.Jobs[given.Addr]
	if j.ID != "new" || j.Attempt != 1 || !slices.Equal(j.Slices, []string{made.Name}) {
		t.Errorf("got attempt %d of %s on %v, want attempt 1 of new on %s", j.Attempt, j.ID, j.Slices, made.Name)
	}
}

func TestMailboxOfAnotherStackIsLeft(t *testing.T) {
	for _, test := range []struct {
		mark   string
		forget bool
	}{{"", true}, {testLineage[:12], true}, {"zyxwvutsrqpo", false}} {
		w := newWorld(t)
		obs := w.observe()
		obs.Assignments["lost"] = plan.Assigned{Assignment: state.Assignment{Slice: "lost", Stack: test.mark, Run: &state.Run{JobID: "j-1"}}}
		p := reconcile.Diff(&w.doc.Desired, w.doc, obs, w.now)
		if got := len(p.Actions) == 1 && p.Actions[0].Verb == plan.ForgetSlice; got != test.forget {
			t.Errorf("mark %q: actions %+v, want it forgotten: %t", test.mark, p.Actions, test.forget)
		}
	}
}

func TestAssignmentsCarryTheMark(t *testing.T) {
	w := newWorld(t)
	w.accept(configuration(newJob("a")))
	w.settle(time.Minute)
	slice := w.sliceOf(jobAddr("a"), 0)
	if a := w.assignments[slice]; a.Run == nil || a.Stack != w.doc.Stack() {
		t.Errorf("assigned %+v, want a run with the mark", a)
	}
	w.accept(configuration(newJob("a", withEnv("A", "1"))))
	w.until(time.Minute, "stopping", func(*plan.Plan) bool { return w.assignments[slice].Run == nil })
	if a := w.assignments[slice]; a.Stack != w.doc.Stack() {
		t.Errorf("told to stop by %+v, want the mark", a)
	}
}

func TestStemOfJobID(t *testing.T) {
	for _, addr := range []schema.Address{jobAddr("a"), memberAddr("g", "a-b"), {Kind: schema.KindJob, Name: "a", Key: schema.StringKey("x/ü y")}} {
		if id := plan.JobID(testLineage, addr, 3); plan.StemOf(id) != plan.JobStem(addr) {
			t.Errorf("%s: stem of %s is %q, want %q", addr, id, plan.StemOf(id), plan.JobStem(addr))
		}
	}
	for _, id := range []string{"", "a", "a-", "a-0123456789a", "a-0123456789aX", "a-0123456789abc", "job.a"} {
		if got := plan.StemOf(id); got != "" {
			t.Errorf("stem of %q is %q, want none", id, got)
		}
	}
}
