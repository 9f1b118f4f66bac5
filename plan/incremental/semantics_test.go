package incremental

import (
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// The behaviours that users rely on, as far as plan decides them. The numbers
// are those of the list that the tests of all packages share.

func (w *world) job(addr schema.Address) *state.Job {
	w.t.Helper()
	j := w.doc.Jobs[addr]
	if j == nil {
		w.t.Fatalf("there is no %s\n%s", addr, w.describe())
	}
	return j
}

// wantJob compares what users see of a job.
func (w *world) wantJob(addr schema.Address, status schema.JobStatus, attempt, failures, preemptions int) {
	w.t.Helper()
	j := w.job(addr)
	if j.Status != status || j.Attempt != attempt || j.Failures != failures || j.Preemptions != preemptions {
		w.t.Fatalf("%s: got %s, attempt %d, %d failures, %d preemptions; want %s, %d, %d, %d\n%s",
			addr, j.Status, j.Attempt, j.Failures, j.Preemptions, status, attempt, failures, preemptions, w.describe())
	}
}

// up is a world in which jobs run.
func up(t *testing.T, desired schema.Desired) *world {
	t.Helper()
	w := newWorld(t)
	w.accept(desired)
	w.settle(time.Minute)
	return w
}

// exits makes a job's attempts end, one after another as told.
func (w *world) exits(addr schema.Address, does ...program) {
	before := w.program
	w.program = func(run *state.Run, task int) program {
		if run.Job != addr {
			return before(run, task)
		}
		return does[min(run.Attempt, len(does))-1]
	}
}

func TestSemantics01AllTasksSucceedOrTheJobFails(t *testing.T) {
	gang := jobAddr("gang")
	w := newWorld(t)
	w.exits(gang, program{runs: 3 * time.Second})
	w.accept(configuration(newJob("gang", onTPU("v5litepod-16"))))
	w.settle(time.Minute)
	w.wantJob(gang, schema.JobSucceeded, 1, 0, 0)

	w = up(t, configuration(newJob("gang", onTPU("v5litepod-16"))))
	w.fail(w.sliceOf(gang, 0), 2, 7)
	w.settle(time.Minute)
	w.wantJob(gang, schema.JobFailed, 1, 1, 0)
	if live := w.liveTasks(gang); len(live) > 0 {
		t.Errorf("the other tasks still run: %v", live)
	}
	if got, want := w.job(gang).Reason, "task 2 of 4: exit status 7"; got != want {
		t.Errorf("reason: got %q, want %q", got, want)
	}
}

func TestSemantics02RetryKeepsTheJobRunningAndTheAttemptOnRecord(t *testing.T) {
	addr := jobAddr("a")
	w := up(t, configuration(newJob("a", failures(1))))
	w.fail(w.sliceOf(addr, 0), 0, 3)
	for range 4 {
		w.step(500 * time.Millisecond)
		if got := w.job(addr).Status; got != schema.JobRunning {
			t.Fatalf("status between attempts: got %s, want running", got)
		}
	}
	w.settle(time.Minute)
	w.wantJob(addr, schema.JobRunning, 2, 1, 0)
	first := w.job(addr).Attempts[0]
	if first.Outcome != schema.TaskFailed || first.Reason != "exit status 3" || *first.Tasks[0].ExitCode != 3 {
		t.Errorf("record of attempt 1: got %+v", first)
	}
}

func TestSemantics03PreemptionSpendsNoFailureBudget(t *testing.T) {
	addr := jobAddr("a")
	w := up(t, configuration(newJob("a", onTPU("v5litepod-4"))))
	for n := range 3 {
		w.preempt(w.sliceOf(addr, 0))
		w.settle(10 * time.Minute)
		w.wantJob(addr, schema.JobRunning, n+2, 0, n+1)
	}
}

func TestSemantics03LossBeforeTheStartCostsNothing(t *testing.T) {
	addr := jobAddr("a")
	w := newWorld(t)
	w.accept(configuration(newJob("a", onTPU("v5litepod-4"), preemptions(0))))
	w.until(time.Minute, "assigned", func(*plan.Plan) bool { return w.doc.Jobs[addr].Attempt == 1 })
	w.vanish(w.sliceOf(addr, 0))
	w.settle(time.Minute)
	w.wantJob(addr, schema.JobRunning, 2, 0, 0)
}

func TestSemantics04OverThePreemptionBudgetFails(t *testing.T) {
	addr := jobAddr("a")
	w := up(t, configuration(newJob("a", onTPU("v5litepod-4"), preemptions(1), failures(5))))
	for range 2 {
		w.preempt(w.sliceOf(addr, 0))
		w.settle(time.Minute)
	}
	w.wantJob(addr, schema.JobFailed, 2, 0, 2)
	if got := w.job(addr); !strings.HasPrefix(got.Reason, "preemption budget spent") || got.Last().Outcome != schema.TaskPreempted {
		t.Errorf("got %q, outcome %s", got.Reason, got.Last().Outcome)
	}
}

func TestSemantics05BadHostIsNotUsedAgain(t *testing.T) {
	addr := jobAddr("a")
	w := newWorld(t)
	w.exits(addr, program{runs: 2 * time.Second, code: 1, state: schema.TaskWorkerFailed}, program{})
	w.accept(configuration(newJob("a")))
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.doc.Jobs[addr].Ready })
	first := w.slices[w.sliceOf(addr, 0)]
	w.settle(time.Minute)
	w.wantJob(addr, schema.JobRunning, 2, 0, 1)
	if w.slices[w.sliceOf(addr, 0)] == first {
		t.Error("the second attempt runs on the bad host")
	}
}

func TestSemantics06GangThatNeverFitsIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		desired schema.Desired
		want    string
	}{
		"gang and pool":      {withPools(configuration(newJob("a", from("p"), onSlices(3))), newPool("p", "", 2)), "Larger than its reservation"},
		"group and pool":     {withPools(configuration(newJob("a", inGroup("g"), from("p")), newJob("b", inGroup("g"), from("p"))), newPool("p", "", 1)), "Larger than its reservation"},
		"gang and provider":  {limited(configuration(newJob("a", onSlices(3))), 2), "Larger than its provider"},
		"group and provider": {limited(configuration(newJob("a", inGroup("g")), newJob("b", inGroup("g"))), 1), "Larger than its provider"},
		"pool and provider":  {limited(withPools(configuration(), newPool("p", "", 3)), 2), "Larger than its provider"},
		"GPUs and provider":  {machineOf(configuration(newJob("a", onGPUs("h100", 2), onSlices(5))), "h100", 8), "Larger than its provider"},
		"another GPU":        {machineOf(configuration(newJob("a", onGPUs("h100", 1))), "t4", 8), "No such GPU"},
		"no alternative":     {machineOf(configuration(newJob("a", onAny("h100:1", "l4:1"))), "t4", 8), "No such GPU"},
		"an alternative":     {machineOf(configuration(newJob("a", onAny("h100:1", "t4:8"))), "t4", 8), ""},
		"any GPU":            {machineOf(configuration(newJob("a", onGPUs("", 8)), newJob("b", onGPUs("t4", 8))), "t4", 8), ""},
		"GPUs of any type":   {machineOf(configuration(newJob("a", onGPUs("h100", 8))), "", 8), ""},
		"GPUs without limit": {limited(configuration(newJob("a", onGPUs("h100", 64))), 1), ""},
		"separate jobs fit":  {limited(configuration(newJob("a"), newJob("b")), 1), ""},
		"whole pool":         {withPools(configuration(newJob("a", from("p"), onSlices(2)), newJob("b", from("p"), onSlices(2))), newPool("p", "", 2)), ""},
	} {
		problems := capacity.Check(&c.desired)
		got := ""
		if len(problems) > 0 {
			got = problems[0].Summary
		}
		if got != c.want || len(problems) > 1 {
			t.Errorf("%s: got %+v, want %q", name, problems, c.want)
		}
	}
}

func TestSemantics08PreemptingWhatEndedChangesNothing(t *testing.T) {
	addr := jobAddr("a")
	w := newWorld(t)
	w.exits(addr, program{runs: time.Second})
	w.accept(configuration(newJob("a", onTPU("v5litepod-4"))))
	w.until(time.Minute, "done", func(*plan.Plan) bool { return w.doc.Jobs[addr].Status.Ended() })
	for name := range w.slices {
		if name != w.oracle.foreign.Name {
			w.preempt(name)
		}
	}
	w.settle(time.Minute)
	w.wantJob(addr, schema.JobSucceeded, 1, 0, 0)
}

func TestSemantics09BackoffGrowsAndIsReset(t *testing.T) {
	addr := jobAddr("a")
	w := newWorld(t)
	brief, long := program{runs: time.Second, code: 1}, program{runs: plan.SteadyAfter + time.Minute, code: 1}
	w.exits(addr, brief, brief, brief, long, brief, program{})
	w.accept(configuration(newJob("a", failures(schema.Unlimited))))
	w.settle(time.Hour)
	w.wantJob(addr, schema.JobRunning, 6, 5, 0)
	attempts := w.job(addr).Attempts
	for i, want := range []time.Duration{0, time.Second, 2 * time.Second, 0, time.Second} {
		got := attempts[i+1].StartedAt.Sub(attempts[i].EndedAt)
		if got < want || got >= want+2*time.Second { // the step after the end sees it
			t.Errorf("delay after attempt %d: got %s, want %s", i+1, got, want)
		}
	}
	for n, want := range map[int]time.Duration{0: 0, 1: time.Second, 5: 16 * time.Second, 10: plan.MaxBackoff, 1000: plan.MaxBackoff} {
		if got := plan.Backoff(n); got != want {
			t.Errorf("Backoff(%d): got %s, want %s", n, got, want)
		}
	}
}

func TestSemantics10GangRestartsTogetherReplicasDoNot(t *testing.T) {
	gang := jobAddr("gang")
	w := up(t, configuration(newJob("gang", onTPU("v5litepod-16"), onSlices(2)), newJob("r", instance(0), failures(1)), newJob("r", instance(1), failures(1))))
	w.killHost(w.sliceOf(gang, 1), 3)
	replica := schema.Address{Kind: schema.KindJob, Name: "r", Key: schema.IntKey(0)}
	w.fail(w.sliceOf(replica, 0), 0, 1)
	w.settle(time.Minute)
	w.wantJob(gang, schema.JobRunning, 2, 0, 1)
	w.wantJob(replica, schema.JobRunning, 2, 1, 0)
	replica.Key = schema.IntKey(1)
	w.wantJob(replica, schema.JobRunning, 1, 0, 0)
	last := w.job(gang).Last()
	for _, name := range last.Slices {
		if got := w.assignments[name].Generation; got != last.Generation {
			t.Errorf("generation of %s: got %d, want %d", name, got, last.Generation)
		}
	}
	if got := len(w.liveTasks(gang)); got != 8 {
		t.Errorf("live tasks: got %d, want 8", got)
	}
}

func TestSemantics11GroupStartsWholeOrNotAtAll(t *testing.T) {
	first, a, b := jobAddr("a"), memberAddr("g", "a"), memberAddr("g", "b")
	w := newWorld(t)
	w.exits(first, program{runs: 20 * time.Second})
	w.accept(limited(configuration(newJob("a"), newJob("a", inGroup("g")), newJob("b", inGroup("g"))), 2))
	w.run(15 * time.Second)
	w.wantJob(a, schema.JobPending, 0, 0, 0)
	if n := len(w.job(a).Slices) + len(w.job(b).Slices); n > 0 {
		t.Errorf("the group holds %d slices before it fits", n)
	}
	w.settle(2 * time.Minute)
	if at, bt := w.job(a).Attempts[0].StartedAt, w.job(b).Attempts[0].StartedAt; !at.Equal(bt) {
		t.Errorf("members started at %s and %s", at, bt)
	}
}

func TestSemantics13FirstInBandPriorityAndAddress(t *testing.T) {
	w := newWorld(t)
	names := []string{"a", "b", "c", "d"}
	desired := configuration(newJob("a", withPriority(schema.BandBatch, 9)), newJob("b"), newJob("c", withPriority("", 5)), newJob("d", withPriority(schema.BandProduction, 0)))
	for _, name := range names {
		w.exits(jobAddr(name), program{runs: 2 * time.Second})
	}
	w.accept(limited(desired, 1))
	w.settle(5 * time.Minute)
	order := []string{"d", "c", "b", "a"}
	for i := 1; i < len(order); i++ {
		before, after := w.job(jobAddr(order[i-1])).Attempts[0].StartedAt, w.job(jobAddr(order[i])).Attempts[0].StartedAt
		if !before.Before(after) {
			t.Errorf("%s started at %s, not before %s at %s", order[i-1], before, order[i], after)
		}
	}
}

func TestSemantics14PendingJobsSayWhy(t *testing.T) {
	w := newWorld(t)
	w.capacity = 2
	desired := configuration(newJob("a"), newJob("b", after(jobAddr("a"))), newJob("c"), newJob("d", from("p"), onSlices(2)))
	w.accept(limited(withPools(desired, newPool("p", "", 1)), 3))
	w.step(time.Second)
	w.step(time.Second)
	p := w.step(time.Second)
	want := map[string]string{
		"job.b":         "waits for job.a to succeed",
		"job.d":         "reservation.p: needs 2 of its 1 slices at once, 1 free",
		"reservation.p": "slice p-0-",
	}
	for _, waits := range p.Pending {
		if text := want[waits.Addr.String()]; !strings.HasPrefix(strings.Join(waits.Reasons, "|"), text) {
			t.Errorf("%s: got %q, want %q", waits.Addr, waits.Reasons, text)
		}
		delete(want, waits.Addr.String())
	}
	w.run(20 * time.Second)
	stockout := false
	for _, waits := range w.last.Pending {
		stockout = stockout || strings.Contains(waits.Reasons[0], errStockout.Error()) && strings.Contains(waits.Reasons[0], "next try in ")
		if len(waits.Reasons) == 0 || waits.Reasons[0] == "" {
			t.Errorf("%s waits and does not say why", waits.Addr)
		}
	}
	if !stockout {
		t.Errorf("no reason names the missing capacity: %+v", w.last.Pending)
	}
	for _, j := range w.doc.Jobs {
		if j.Status == schema.JobPending && j.Reason == "" {
			t.Errorf("%s is pending without a reason", j.Spec.Addr)
		}
	}
}
