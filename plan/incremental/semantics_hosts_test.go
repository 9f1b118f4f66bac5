package incremental

import (
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func TestSemantics15OneBadReadingKillsNothing(t *testing.T) {
	addr := jobAddr("a")
	w := up(t, configuration(newJob("a", onTPU("v5litepod-16"))))
	w.mute(w.sliceOf(addr, 0), 1, true)
	w.run(snapshot.HostTimeout - 5*time.Second)
	w.wantJob(addr, schema.JobRunning, 1, 0, 0)
	w.mute(w.sliceOf(addr, 0), 1, false)
	w.settle(time.Minute)
	w.wantJob(addr, schema.JobRunning, 1, 0, 0)
}

func TestSemantics16OneLostHostReapsItsSlice(t *testing.T) {
	addr := jobAddr("a")
	w := up(t, configuration(newJob("a", onTPU("v5litepod-16"))))
	first := w.slices[w.sliceOf(addr, 0)]
	w.mute(w.sliceOf(addr, 0), 1, true)
	w.run(2 * snapshot.HostTimeout)
	w.settle(time.Minute)
	w.wantJob(addr, schema.JobRunning, 2, 0, 1)
	if w.slices[w.sliceOf(addr, 0)] == first {
		t.Error("the slice of the lost host is still used")
	}
}

func TestSemantics16NoListNoConclusion(t *testing.T) {
	addr := jobAddr("a")
	w := up(t, configuration(newJob("a", onTPU("v5litepod-16"))))
	w.unreachable = true
	w.run(3 * time.Hour)
	w.unreachable = false
	w.settle(time.Minute)
	w.wantJob(addr, schema.JobRunning, 1, 0, 0)
}

func TestSemantics17HealthyAgentsMakeASliceReady(t *testing.T) {
	w := newWorld(t)
	w.createTakes = 24 * time.Hour // the cloud's operation stays open
	w.accept(configuration(newJob("a", onTPU("v5litepod-16"))))
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.doc.Jobs[jobAddr("a")].Ready })
	if got := w.slices[w.sliceOf(jobAddr("a"), 0)].phase; got != schema.SliceCreating {
		t.Fatalf("phase: got %s, want creating", got)
	}
}

func TestSemantics17HostsThatNeverReportAreGivenUp(t *testing.T) {
	w := newWorld(t)
	w.bootTakes = 24 * time.Hour
	w.accept(configuration(newJob("a")))
	w.step(time.Second)
	w.step(time.Second)
	first := w.slices[w.sliceOf(jobAddr("a"), 0)]
	for range 70 {
		w.step(time.Minute)
	}
	w.bootTakes = time.Second
	if w.slices[w.sliceOf(jobAddr("a"), 0)] == first {
		t.Errorf("after %s the slice is still waited for", 70*time.Minute)
	}
}

func TestSemantics19DeletingGoesOnPastErrors(t *testing.T) {
	w := up(t, configuration(newJob("a"), newJob("b")))
	stuck, other := w.sliceOf(jobAddr("a"), 0), w.sliceOf(jobAddr("b"), 0)
	fails := true
	w.loses = func(a plan.Action) bool {
		if fails && a.Verb == plan.DeleteSlice && a.Slice.Name == stuck {
			w.fold(a, errUnavailable)
			return true
		}
		return false
	}
	w.accept(configuration())
	w.run(30 * time.Second)
	if w.slices[other] != nil || w.slices[stuck] == nil {
		t.Fatalf("one deletion fails and the other does not\n%s", w.describe())
	}
	said := false
	for _, p := range w.last.Pending {
		said = said || strings.Contains(strings.Join(p.Reasons, "|"), "cannot be deleted: "+errUnavailable.Error())
	}
	if !said {
		t.Errorf("what will not die is not reported: %+v", w.last.Pending)
	}
	fails = false
	w.settle(10 * time.Minute)
	if w.slices[stuck] != nil {
		t.Error("the slice was forgotten")
	}
}

func TestSemantics20SliceIsIdleOnlyWhenNothingIsAssigned(t *testing.T) {
	w := up(t, withPools(configuration(newJob("a", from("p"))), newPool("p", "", 1)))
	w.stopTakes = 10 * time.Second
	w.accept(withPools(configuration(newJob("b", from("p"))), newPool("p", "", 1)))
	for w.doc.Jobs[jobAddr("b")] == nil || w.job(jobAddr("b")).Attempt == 0 {
		w.step(500 * time.Millisecond)
	}
	if live := w.liveTasks(jobAddr("a")); len(live) > 0 {
		t.Errorf("b was assigned while a runs on %v", live)
	}
	w.settle(time.Minute)
	w.wantJob(jobAddr("b"), schema.JobRunning, 1, 0, 0)
}

func TestSemantics21OldAttemptIsDeadBeforeTheNewOneStarts(t *testing.T) {
	addr := jobAddr("a")
	w := up(t, configuration(newJob("a", onTPU("v5litepod-16"), withEnv("V", "1"))))
	w.stopTakes = 30 * time.Second
	w.accept(configuration(newJob("a", onTPU("v5litepod-16"), withEnv("V", "2"))))
	w.run(20 * time.Second)
	w.wantJob(addr, schema.JobRunning, 1, 0, 0)
	w.settle(time.Minute) // the oracle sees to the rest
	w.wantJob(addr, schema.JobRunning, 2, 0, 0)
}

func TestSemantics29RestartsMeanExactlyThat(t *testing.T) {
	for name, c := range map[string]struct {
		options  []jobOption
		code     int
		status   schema.JobStatus
		attempts int
	}{
		"0":                     {[]jobOption{failures(0)}, 1, schema.JobFailed, 1},
		"2":                     {[]jobOption{failures(2)}, 1, schema.JobFailed, 3},
		"-1":                    {[]jobOption{failures(schema.Unlimited)}, 1, schema.JobRunning, 9},
		"clean exit":            {[]jobOption{failures(schema.Unlimited)}, 0, schema.JobSucceeded, 1},
		"clean exit, always 2":  {[]jobOption{failures(2), always}, 0, schema.JobSucceeded, 3},
		"clean exit, always -1": {[]jobOption{failures(schema.Unlimited), always}, 0, schema.JobRunning, 9},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			job := newJob("s", append(c.options, asService, instance(0))...)
			w.program = func(run *state.Run, _ int) program {
				if run.Attempt == 9 {
					return program{}
				}
				return program{runs: time.Second, code: c.code}
			}
			w.accept(configuration(job))
			w.settle(2 * time.Hour)
			if j := w.job(job.Addr); j.Status != c.status || j.Attempt != c.attempts {
				t.Errorf("got %s after %d attempts, want %s after %d", j.Status, j.Attempt, c.status, c.attempts)
			}
		})
	}
}

func TestSemantics29RestartsAfterPreemption(t *testing.T) {
	for name, c := range map[string]struct {
		limit, taken int // how often its slice is taken away
		status       schema.JobStatus
		attempts     int
	}{
		"0":  {0, 1, schema.JobFailed, 1},
		"2":  {2, 3, schema.JobFailed, 3},
		"-1": {schema.Unlimited, 5, schema.JobRunning, 6},
	} {
		t.Run(name, func(t *testing.T) {
			job := newJob("s", asService, instance(0), failures(c.limit), preemptions(c.limit))
			w := up(t, configuration(job))
			for range c.taken {
				w.preempt(w.sliceOf(job.Addr, 0))
				w.settle(10 * time.Minute)
			}
			w.wantJob(job.Addr, c.status, c.attempts, 0, c.taken)
		})
	}
}

func TestSemantics31ManyDetectorsOneRestart(t *testing.T) {
	addr := jobAddr("a")
	w := up(t, configuration(newJob("a", onTPU("v5litepod-16"), onSlices(2), failures(5))))
	w.fail(w.sliceOf(addr, 0), 0, 1)
	w.notice(w.sliceOf(addr, 0), 1)
	w.killHost(w.sliceOf(addr, 1), 0)
	w.preempt(w.sliceOf(addr, 1))
	w.settle(5 * time.Minute)
	w.wantJob(addr, schema.JobRunning, 2, 0, 1)
}

func TestSemantics35PlanAfterApplyIsEmpty(t *testing.T) {
	w := up(t, withPools(configuration(newJob("a", onTPU("v5litepod-16")), newJob("b", inGroup("g"), from("p")),
		newJob("s", asService, instance(0), withEnv("V", "<&>"))), newPool("p", "v5litepod-8", 2)))
	desired := w.doc.Desired // as if read again from the files
	desired.Jobs = reread(t, w.doc).Desired.Jobs
	for range 3 {
		p := reconcile.Diff(&desired, w.doc, w.observe(), w.now)
		if !p.Empty() || len(p.Pending) > 0 || p.Next != w.doc {
			t.Fatalf("got changes %+v, drift %+v, actions %+v, pending %+v", p.Counts(), p.Drift, p.Actions, p.Pending)
		}
	}
}

func TestSemantics36RestartOfTheControllerLosesNothing(t *testing.T) {
	// The oracle counts starts; here the controller dies after every step.
	a, b := jobAddr("a"), memberAddr("g", "b")
	w := newWorld(t)
	w.exits(b, program{runs: 4 * time.Second, code: 1}, program{})
	w.accept(configuration(newJob("a", onTPU("v5litepod-16"), onSlices(2)), newJob("b", inGroup("g"), failures(1)), newJob("c", inGroup("g"))))
	for range 200 {
		w.step(100 * time.Millisecond)
		w.crash()
	}
	w.settle(time.Minute)
	w.wantJob(a, schema.JobRunning, 1, 0, 0)
	w.wantJob(b, schema.JobRunning, 2, 1, 0)
}

// A state that is older than the world (a backup was put in its place) is
// brought up to date, not the world back.
func TestSemantics36OldStateIsBroughtUpToDate(t *testing.T) {
	addr := jobAddr("a")
	w := newWorld(t)
	w.stopTakes = 20 * time.Second
	w.accept(configuration(newJob("a", failures(3))))
	w.until(time.Minute, "assigned", func(*plan.Plan) bool { return w.doc.Jobs[addr].Attempt == 1 })
	backup := w.doc
	changed := configuration(newJob("a", failures(3), withEnv("V", "2")))
	w.accept(changed)
	w.until(time.Minute, "told to stop", func(*plan.Plan) bool { return w.assignments[w.sliceOf(addr, 0)].Generation == 2 })
	w.doc = backup
	w.accept(changed)
	w.settle(2 * time.Minute)
	w.wantJob(addr, schema.JobRunning, 2, 0, 0)

	w.fail(w.sliceOf(addr, 0), 0, 1)
	w.settle(2 * time.Minute)
	w.wantJob(addr, schema.JobRunning, 3, 1, 0)
	w.doc = backup
	w.accept(changed)
	w.settle(time.Minute)
	w.wantJob(addr, schema.JobRunning, 3, 1, 0)
}

func TestSemantics37UnknownDeclarationsAreAdoptedOrRemovedForeignOnesNever(t *testing.T) {
	a := jobAddr("a")
	w := up(t, configuration(newJob("a"), newJob("b")))
	starts := len(w.oracle.starts)
	// The state is lost, and b is declared no more.
	w.doc = &state.Document{Lineage: testLineage}
	w.accept(configuration(newJob("a")))
	p := w.step(time.Second)
	shown := map[string]bool{}
	for _, d := range p.Drift {
		shown[d.Addr.String()] = true
	}
	if !shown["job.a"] || !shown["job.b"] {
		t.Errorf("what was found is not shown: %+v", p.Drift)
	}
	w.settle(time.Minute)
	w.wantJob(a, schema.JobRunning, 1, 0, 0)
	if len(w.slices) != 2 || w.slices[w.oracle.foreign.Name] == nil {
		t.Errorf("slices left: %v\n%s", len(w.slices), w.describe())
	}
	if len(w.oracle.starts) != starts {
		t.Error("something was started again")
	}
}
