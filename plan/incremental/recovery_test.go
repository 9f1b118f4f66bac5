package incremental

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A slice on which an unknown task runs is no idle slice.
func TestLeftoverTaskOnAPoolIsStoppedFirst(t *testing.T) {
	b := jobAddr("b")
	w := up(t, withPools(configuration(newJob("a", from("p"))), newPool("p", "v5litepod-16", 1)))
	w.stopTakes = 10 * time.Second
	w.doc = &state.Document{Lineage: testLineage}
	w.accept(withPools(configuration(newJob("b", from("p"))), newPool("p", "v5litepod-16", 1)))
	w.settle(time.Minute) // the oracle sees to the order
	w.wantJob(b, schema.JobRunning, 1, 0, 0)
}

// A host that its provider could start again, and does not, is lost after all.
func TestHostThatCannotBeRepaired(t *testing.T) {
	a := jobAddr("a")
	w := up(t, configuration(newJob("a")))
	first := w.slices[w.sliceOf(a, 0)]
	tries := 0
	w.loses = func(action plan.Action) bool {
		if action.Verb != plan.RepairSlice {
			return false
		}
		tries++
		w.fold(action, errUnavailable)
		return true
	}
	w.killAgent(w.sliceOf(a, 0), 0)
	w.run(2*snapshot.HostTimeout + 10*time.Second)
	w.settle(time.Minute)
	w.wantJob(a, schema.JobRunning, 2, 0, 1)
	if w.slices[w.sliceOf(a, 0)] == first {
		t.Error("the slice with the lost host is still used")
	}
	if tries < 5 || tries > 8 {
		t.Errorf("it was tried %d times in %s, want a backoff", tries, 2*snapshot.HostTimeout)
	}
}

func TestStrayMailboxesAreForgotten(t *testing.T) {
	w := up(t, configuration(newJob("a")))
	w.assignments["stray-1"] = plan.Assigned{Assignment: state.Assignment{Slice: "stray-1", Generation: 3}, Object: 1}
	w.reports[hostKey{"stray-2", 0}] = state.HostReport{Slice: "stray-2"}
	w.settle(time.Minute)
	if len(w.assignments) != 1 || len(w.reports) != 1 {
		t.Errorf("got %d assignments and %d reports, want 1 of each", len(w.assignments), len(w.reports))
	}
}

// A service keeps being restarted though what it needed to start has failed
// since; one that never started waits.
func TestRestartDoesNotWaitForWhatFailedLater(t *testing.T) {
	a, b := jobAddr("a"), jobAddr("b")
	w := up(t, configuration(newJob("a", healthy), newJob("b", after(a), failures(3))))
	w.fail(w.sliceOf(a, 0), 0, 1)
	w.settle(time.Minute)
	w.wantJob(a, schema.JobFailed, 1, 1, 0)
	w.fail(w.sliceOf(b, 0), 0, 1)
	w.settle(time.Minute)
	w.wantJob(b, schema.JobRunning, 2, 1, 0)
	w.accept(configuration(newJob("a", healthy), newJob("b", after(a), failures(3)), newJob("c", after(a))))
	w.run(10 * time.Second)
	w.wantJob(jobAddr("c"), schema.JobPending, 0, 0, 0)
}

// The mailbox of a job's namesake is still there when the job is declared again.
func TestNamesakesAttemptIsNotAdopted(t *testing.T) {
	for name, desired := range map[string]schema.Desired{
		"own slice": configuration(newJob("a")),
		"pool":      withPools(configuration(newJob("a", from("p"))), newPool("p", "", 1)),
	} {
		t.Run(name, func(t *testing.T) {
			a := jobAddr("a")
			w := up(t, desired)
			forgets := false
			w.loses = func(action plan.Action) bool { return action.Verb == plan.ForgetSlice && !forgets }
			w.vanish(w.sliceOf(a, 0))
			gone := desired
			gone.Jobs = nil
			w.accept(gone)
			w.until(time.Minute, "gone", func(*plan.Plan) bool { return w.doc.Jobs[a] == nil })
			w.accept(desired)
			w.run(5 * time.Second)
			w.wantJob(a, schema.JobPending, 0, 0, 0)
			forgets = true
			w.settle(time.Minute)
			w.wantJob(a, schema.JobRunning, 1, 0, 0)
			if got := w.job(a).Attempts[0].Why; got != "first start" {
				t.Errorf("why it began: got %q", got)
			}
		})
	}
}

// A slice deleted by hand or by its cloud is drift: it is shown and made again.
func TestVanishedSliceIsShown(t *testing.T) {
	a := jobAddr("a")
	w := up(t, configuration(newJob("a")))
	w.vanish(w.sliceOf(a, 0))
	p := w.step(time.Second)
	if len(p.Drift) == 0 || p.Drift[0].Addr != a || p.Drift[0].Slice != w.sliceOf(a, 0) {
		t.Errorf("drift: got %+v", p.Drift)
	}
	w.settle(time.Minute)
	w.wantJob(a, schema.JobRunning, 2, 0, 1)
}

// While the provider deletes a slice the call is repeated, but not all the time.
func TestDeletionIsRepeatedNowAndThen(t *testing.T) {
	w := up(t, configuration(newJob("a")))
	w.deleteTakes = 3 * time.Minute
	calls := 0
	w.loses = func(a plan.Action) bool {
		if a.Verb == plan.DeleteSlice {
			calls++
		}
		return false
	}
	w.accept(schema.Desired{})
	w.settle(10 * time.Minute)
	if calls < 4 || calls > 12 {
		t.Errorf("got %d calls in 3 minutes", calls)
	}
	w.empty()
}

// An attempt whose slice was told to run nothing, by a step that did not live
// to record it, before its task could start: no report will ever tell.
func TestAttemptThatWasCalledOffUnrecorded(t *testing.T) {
	a := jobAddr("a")
	w := newWorld(t)
	w.accept(configuration(newJob("a")))
	w.until(time.Minute, "assigned", func(*plan.Plan) bool { return w.doc.Jobs[a].Attempt == 1 })
	name := w.sliceOf(a, 0)
	w.generation++
	w.assignments[name] = plan.Assigned{Assignment: state.Assignment{Slice: name, Epoch: w.epoch, Generation: 2}, Object: w.generation}
	w.settle(time.Minute)
	w.wantJob(a, schema.JobRunning, 2, 0, 0)
	if got := w.job(a).Attempts[0].Outcome; got != schema.TaskKilled {
		t.Errorf("outcome of attempt 1: got %s, want killed", got)
	}
}

// A slice came up, its host reported notice of preemption, and it was gone
// before any look listed it. What that host said is about nothing, once a direct
// read confirms that the slice is gone: the next slice of the name starts with an
// empty mailbox.
func TestReportsOfASliceThatWasNeverListedAreForgotten(t *testing.T) {
	w := up(t, configuration())
	desired := configuration(newJob("a"))
	doc := w.doc.Clone()
	doc.Desired = desired
	confirmed := map[string]plan.Confirmation{}
	look := func(hosts ...plan.Host) *plan.Plan {
		t.Helper()
		obs := &plan.Observed{
			Inventories:   map[schema.ProviderName]schema.Inventory{schema.ProviderLocal: {}},
			Hosts:         map[string][]plan.Host{},
			Confirmations: confirmed,
		}
		if len(hosts) > 0 {
			obs.Hosts[hosts[0].Slice] = hosts
		}
		p := reconcile.Diff(&desired, doc, obs, w.now)
		doc = p.Next
		return p
	}
	wantAction := func(p *plan.Plan, want ...plan.ActionVerb) {
		t.Helper()
		var got []plan.ActionVerb
		for _, a := range p.Actions {
			got = append(got, a.Verb)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("actions %v, want %v", got, want)
		}
	}
	p := look()
	wantAction(p, plan.CreateSlice)
	stale := plan.Host{HostReport: state.HostReport{Slice: p.Actions[0].Slice.Name, Address: "10.0.0.1", Notice: "preemption"}}
	wantAction(look(stale)) // it may only be listed later
	wantAction(look(stale)) // one list that lacks it is not believed
	confirmed[stale.Slice] = plan.Confirmation{Answer: snapshot.AnswerGone, ReadAt: w.now.Add(time.Second)}
	wantAction(look(stale), plan.ForgetSlice)
	wantAction(look(), plan.CreateSlice)
	if s := doc.Slices[stale.Slice]; s.Listed || s.PendingSince.IsZero() {
		t.Errorf("the slice is recorded as %+v, want asked for and not seen", s)
	}
}

// TestStatusesOfASliceThatIsGoneAreForgotten: machines that never reported leave only their
// statuses in the store. They go once the slice is neither recorded nor listed, also where a
// part of the stack is planned.
func TestStatusesOfASliceThatIsGoneAreForgotten(t *testing.T) {
	w := newWorld(t)
	service := newJob("a", asService)
	w.accept(configuration(service))
	w.settle(time.Minute)
	live := w.sliceOf(service.Addr, 0)
	planned := func(booting ...string) *plan.Plan {
		t.Helper()
		obs := w.observe()
		obs.Booting = map[string]bool{}
		for _, name := range booting {
			obs.Booting[name] = true
		}
		whole, part := reconcile.Diff(&w.doc.Desired, w.doc, obs, w.now), w.planner.Diff(&w.doc.Desired, w.doc, obs, w.now)
		if !reflect.DeepEqual(whole.Actions, part.Actions) {
			t.Errorf("the whole plan has the actions %+v, the planner %+v", whole.Actions, part.Actions)
		}
		return part
	}
	if !w.planner.focus.on {
		t.Fatal("the planner plans everything")
	}
	if p := planned(live); len(p.Actions) != 0 {
		t.Errorf("beside a slice that lives: %+v", p.Actions)
	}
	p := planned(live, "gone")
	if len(p.Actions) != 1 || p.Actions[0].Verb != plan.ForgetSlice || p.Actions[0].Slice.Name != "gone" {
		t.Errorf("after a slice that is gone: %+v, want it forgotten", p.Actions)
	}
	if p := planned(); len(p.Actions) != 0 {
		t.Errorf("when it is forgotten: %+v", p.Actions)
	}
}
