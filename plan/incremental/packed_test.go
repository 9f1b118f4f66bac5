package incremental

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// packedOn are the slices on which a job's packed tasks are placed, in order.
func (w *world) packedOn(addr schema.Address) []string {
	var on []string
	for _, name := range w.job(addr).Slices {
		if s := w.doc.Slices[name]; s != nil {
			on = append(on, s.Spec.On)
		}
	}
	return on
}

func (w *world) wantWaits(addr schema.Address, words ...string) {
	w.t.Helper()
	w.wantJob(addr, schema.JobPending, 0, 0, 0)
	for _, p := range w.last.Pending {
		if p.Addr != addr {
			continue
		}
		for _, word := range words {
			if !strings.Contains(strings.Join(p.Reasons, "\n"), word) {
				w.t.Fatalf("%s waits because %q, want %q in it", addr, p.Reasons, word)
			}
		}
		return
	}
	w.t.Fatalf("%s does not say why it waits\n%s", addr, w.describe())
}

func numbered(n int, options ...jobOption) []schema.Job {
	var jobs []schema.Job
	for i := range n {
		jobs = append(jobs, newJob(fmt.Sprintf("j%d", i), options...))
	}
	return jobs
}

func TestFourOfFivePackedJobsRunOnOneSlice(t *testing.T) {
	w := newWorld(t)
	w.exits(jobAddr("j0"), program{runs: time.Minute})
	w.accept(withPools(configuration(numbered(5, packed("pool", 1, 1))...), cpuPool("pool", 4, 1)))
	w.run(20 * time.Second)
	for i := range 4 {
		w.wantJob(jobAddr(fmt.Sprintf("j%d", i)), schema.JobRunning, 1, 0, 0)
	}
	w.wantWaits(jobAddr("j4"), "no room for 1 CPU: of 1 host 1 with too little CPU left; used by job.j0, job.j1, job.j2 (and 1 more)")
	if n := w.machines() - 1; n != 1 { // beside another stack's
		t.Fatalf("there are %d slices, want 1", n)
	}
	w.run(time.Minute)
	w.wantJob(jobAddr("j0"), schema.JobSucceeded, 1, 0, 0)
	w.wantJob(jobAddr("j4"), schema.JobRunning, 1, 0, 0)
}

func TestPackedGoWhereTheyLeaveLeast(t *testing.T) {
	tests := map[string]struct {
		jobs []schema.Job
		want map[string]string // by job: which other job is on its host, "" for none
		wait map[string]string // by job: why
	}{
		"the fuller host first": {
			jobs: []schema.Job{newJob("a", packed("pool", 3, 1)), newJob("b", packed("pool", 2, 1)), newJob("c", packed("pool", 1, 1))},
			want: map[string]string{"a": "c", "b": "", "c": "a"},
		},
		"no host has what is left on several": {
			jobs: []schema.Job{newJob("a", packed("pool", 3, 1)), newJob("b", packed("pool", 3, 1)), newJob("c", packed("pool", 2, 1))},
			want: map[string]string{"a": "", "b": ""},
			wait: map[string]string{"c": "of 2 hosts 2 with too little CPU left"},
		},
		"memory counts": {
			jobs: []schema.Job{newJob("a", packed("pool", 1, 1), withMemory(6<<30)), newJob("b", packed("pool", 1, 1), withMemory(6<<30)), newJob("c", packed("pool", 1, 1), withMemory(6<<30))},
			want: map[string]string{"a": "", "b": ""},
			wait: map[string]string{"c": "2 with too little memory left"},
		},
		"one port on a host": {
			jobs: []schema.Job{newJob("a", packed("pool", 1, 1), onPort(80)), newJob("b", packed("pool", 1, 1), onPort(80)), newJob("c", packed("pool", 1, 1), onPort(80, 81)), newJob("d", packed("pool", 1, 1), onPort(81))},
			want: map[string]string{"a": "d", "b": "", "d": "a"},
			wait: map[string]string{"c": "2 with port 80 taken"},
		},
		"a gang whole or not at all": {
			jobs: []schema.Job{newJob("a", packed("pool", 2, 1)), newJob("b", packed("pool", 2, 4))},
			want: map[string]string{"a": ""},
			wait: map[string]string{"b": "no room for 4 times 2 CPU at once"},
		},
		"a group whole or not at all": {
			jobs: []schema.Job{newJob("a", packed("pool", 3, 2), inGroup("g")), newJob("b", packed("pool", 2, 1), inGroup("g"))},
			wait: map[string]string{"a": "no room for 2 CPU", "b": "no room for 2 CPU"},
		},
		"not where a whole slice is used": {
			jobs: []schema.Job{newJob("a", from("pool"), onSlices(2)), newJob("b", packed("pool", 1, 1))},
			want: map[string]string{"a": ""},
			wait: map[string]string{"b": "2 with used as a whole; used by job.a"},
		},
		"and no whole slice where packed tasks are": {
			jobs: []schema.Job{newJob("a", packed("pool", 1, 1)), newJob("b", from("pool"), onSlices(2))},
			want: map[string]string{"a": ""},
			wait: map[string]string{"b": "needs 2 of its 2 slices at once, 1 free; used by job.a"},
		},
		"both kinds in one group": {
			jobs: []schema.Job{newJob("a", packed("pool", 4, 1), inGroup("g")), newJob("b", from("pool"), inGroup("g"))},
			want: map[string]string{"a": "", "b": ""},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			pool := cpuPool("pool", 4, 2)
			pool.Min.Memory = 8 << 30
			pool.Max = pool.Min
			desired := withPools(configuration(test.jobs...), pool)
			w.accept(desired)
			w.run(20 * time.Second)
			for _, job := range desired.Jobs {
				if why, waits := test.wait[job.Addr.Name]; waits {
					w.wantWaits(job.Addr, why)
					continue
				}
				w.wantJob(job.Addr, schema.JobRunning, 1, 0, 0)
				if want, others := test.want[job.Addr.Name], w.besides(job.Addr); strings.Join(others, " ") != want {
					t.Errorf("beside %s there is %v, want %q", job.Addr, others, want)
				}
			}
		})
	}
}

func withMemory(b schema.Bytes) jobOption {
	return func(j *schema.Job) { j.Resources.Memory = b }
}

// besides are the names of the other jobs that have packed tasks where one has.
func (w *world) besides(addr schema.Address) []string {
	var names []string
	on := w.packedOn(addr)
	for i := range w.doc.Desired.Jobs {
		other := w.doc.Desired.Jobs[i].Addr
		if other != addr && slices.ContainsFunc(w.packedOn(other), func(name string) bool { return name != "" && slices.Contains(on, name) }) {
			names = append(names, other.Name)
		}
	}
	return names
}

// TestSemantics10OnlyTheGangOfALostHostRestarts: jobs that share nothing with it go on.
func TestSemantics10OnlyTheGangOfALostHostRestarts(t *testing.T) {
	tests := map[string]struct {
		lose    func(w *world, slice string)
		outcome schema.TaskState
	}{
		"gone":      {func(w *world, slice string) { w.vanish(slice) }, schema.TaskWorkerFailed},
		"preempted": {func(w *world, slice string) { w.preempt(slice) }, schema.TaskPreempted},
		"silent":    {func(w *world, slice string) { w.mute(slice, 0, true) }, schema.TaskWorkerFailed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			pool := cpuPool("pool", 4, 2)
			pool.Preemptible = test.outcome == schema.TaskPreempted
			w.accept(withPools(configuration(
				newJob("a-gang", packed("pool", 3, 2)), newJob("beside", packed("pool", 1, 1)), newJob("far", packed("pool", 1, 1)),
			), pool))
			w.settle(time.Minute)
			lost := w.packedOn(jobAddr("beside"))[0]
			if slices.Contains(w.packedOn(jobAddr("far")), lost) {
				t.Fatal("both small jobs are on one host; the test shows nothing")
			}
			test.lose(w, lost)
			w.run(time.Minute)
			w.settle(5 * time.Minute)
			w.wantJob(jobAddr("far"), schema.JobRunning, 1, 0, 0)
			for _, name := range []string{"a-gang", "beside"} {
				w.wantJob(jobAddr(name), schema.JobRunning, 2, 0, 1)
				if got := w.job(jobAddr(name)).Attempts[0].Outcome; got != test.outcome {
					t.Errorf("the first attempt of %s ended as %s, want %s", name, got, test.outcome)
				}
			}
		})
	}
}

// TestSemantics20AHostWithPackedIsNotIdle: it is held, as one is that a job has whole.
func TestSemantics20AHostWithPackedIsNotIdle(t *testing.T) {
	w := newWorld(t)
	w.exits(jobAddr("a"), program{runs: time.Hour})
	pool := cpuPool("pool", 4, 1)
	pool.Min.Slices, pool.IdleTimeout = 0, schema.Duration(time.Minute)
	w.accept(withPools(configuration(newJob("a", packed("pool", 1, 1))), pool))
	w.pass(30 * time.Minute)
	w.wantJob(jobAddr("a"), schema.JobRunning, 1, 0, 0)
	w.pass(40 * time.Minute)
	w.wantJob(jobAddr("a"), schema.JobSucceeded, 1, 0, 0)
	if n := w.machines() - 1; n != 0 {
		t.Errorf("%d slices are left after everything has ended\n%s", n, w.describe())
	}
}

// TestSemantics21ARoomIsGivenOnceItIsEmpty: the oracle watches that two runs are
// never on one host beyond what it can hold; here that the next one waits for the
// end of a task that takes long to stop.
func TestSemantics21ARoomIsGivenOnceItIsEmpty(t *testing.T) {
	w := newWorld(t)
	pool := cpuPool("pool", 1, 1)
	w.accept(withPools(configuration(newJob("a", packed("pool", 1, 1)), newJob("b", packed("pool", 1, 1))), pool))
	w.run(20 * time.Second)
	w.wantJob(jobAddr("a"), schema.JobRunning, 1, 0, 0)
	w.stopTakes = 30 * time.Second
	w.accept(withPools(configuration(newJob("b", packed("pool", 1, 1))), pool))
	w.run(20 * time.Second)
	if live := w.liveTasks(jobAddr("a")); len(live) != 1 {
		t.Fatalf("a has live tasks %v, want 1", live)
	}
	w.wantWaits(jobAddr("b"), "too little CPU left")
	w.settle(time.Minute)
	w.wantJob(jobAddr("b"), schema.JobRunning, 1, 0, 0)
}

// TestPackedLeaveOthersAlone: neither generations nor tasks of a host change when
// packed tasks come and go.
func TestPackedLeaveOthersAlone(t *testing.T) {
	w := newWorld(t)
	w.exits(jobAddr("b"), program{runs: 5 * time.Second})
	pool := cpuPool("pool", 4, 1)
	w.accept(withPools(configuration(newJob("a", packed("pool", 1, 1))), pool))
	w.settle(time.Minute)
	task := w.sliceOf(jobAddr("a"), 0)
	on := w.packedOn(jobAddr("a"))[0]
	was, host := w.assignments[task], w.assignments[on]
	w.accept(withPools(configuration(newJob("a", packed("pool", 1, 1)), newJob("b", packed("pool", 1, 1))), pool))
	w.settle(time.Minute)
	w.wantJob(jobAddr("b"), schema.JobSucceeded, 1, 0, 0)
	if is := w.assignments[task]; is.Object != was.Object {
		t.Errorf("the assignment of a's packed task was written again: %+v", is)
	}
	is := w.assignments[on]
	if is.Generation != host.Generation || len(is.PackedTasks) != 1 || is.PackedTasks[0].Slice != task {
		t.Errorf("the host's assignment is %+v, was %+v", is, host)
	}
	if is.Object == host.Object {
		t.Error("the host was never told of b's packed task")
	}
	w.wantJob(jobAddr("a"), schema.JobRunning, 1, 0, 0)
}

func TestRestartInPlaceKeepsTheRoom(t *testing.T) {
	w := newWorld(t)
	pool := cpuPool("pool", 4, 1)
	w.accept(withPools(configuration(newJob("a", packed("pool", 1, 1))), pool))
	w.settle(time.Minute)
	task := w.sliceOf(jobAddr("a"), 0)
	w.accept(withPools(configuration(newJob("a", packed("pool", 1, 1), withEnv("A", "1"))), pool))
	w.settle(time.Minute)
	w.wantJob(jobAddr("a"), schema.JobRunning, 2, 0, 0)
	if got := w.sliceOf(jobAddr("a"), 0); got != task {
		t.Errorf("it runs on %s, and did on %s", got, task)
	}
	// Another size is another room.
	w.accept(withPools(configuration(newJob("a", packed("pool", 2, 1), withEnv("A", "1"))), pool))
	w.settle(time.Minute)
	w.wantJob(jobAddr("a"), schema.JobRunning, 3, 0, 0)
	if s := w.doc.Slices[w.sliceOf(jobAddr("a"), 0)]; s.Spec.CPU != 2 {
		t.Errorf("its room has %g CPU, want 2", s.Spec.CPU)
	}
}

func TestCreateBeforeDestroyOfPacked(t *testing.T) {
	w := newWorld(t)
	pool := cpuPool("pool", 4, 1)
	first := func(j *schema.Job) { j.Lifecycle.CreateBeforeDestroy = true }
	w.accept(withPools(configuration(newJob("a", packed("pool", 2, 1), first)), pool))
	w.settle(time.Minute)
	old := w.sliceOf(jobAddr("a"), 0)
	w.accept(withPools(configuration(newJob("a", packed("pool", 1, 1), first)), pool))
	w.until(time.Minute, "staged", func(*plan.Plan) bool { return len(w.job(jobAddr("a")).Staged) == 1 })
	if live := w.liveTasks(jobAddr("a")); len(live) != 1 {
		t.Errorf("while its new room is made it runs on %v, want the old one", live)
	}
	w.settle(time.Minute)
	w.wantJob(jobAddr("a"), schema.JobRunning, 2, 0, 0)
	if w.doc.Slices[old] != nil {
		t.Errorf("the old room is still recorded\n%s", w.describe())
	}
}

func TestPoolDrainsAndPackedMove(t *testing.T) {
	w := newWorld(t)
	pool := cpuPool("pool", 2, 2)
	jobs := configuration(newJob("a", packed("pool", 1, 1)), newJob("b", packed("pool", 2, 1)))
	w.accept(withPools(jobs, pool))
	w.settle(time.Minute)
	smaller := cpuPool("pool", 2, 1)
	w.accept(withPools(jobs, smaller)) // what runs goes on
	w.run(time.Minute)
	w.wantJob(jobAddr("a"), schema.JobRunning, 1, 0, 0)
	w.wantJob(jobAddr("b"), schema.JobRunning, 1, 0, 0)
	w.accept(schema.Desired{})
	w.settle(2 * time.Minute)
	if len(w.doc.Slices) > 0 || w.machines() != 1 || len(w.assignments) > 0 {
		t.Errorf("something is left of everything\n%s", w.describe())
	}
}

func TestUnrecordedPackedAreAdopted(t *testing.T) {
	w := newWorld(t)
	pool := cpuPool("pool", 4, 1)
	w.accept(withPools(configuration(newJob("a", packed("pool", 1, 1))), pool))
	w.settle(time.Minute)
	w.accept(withPools(configuration(newJob("a", packed("pool", 1, 1)), newJob("b", packed("pool", 1, 2))), pool))
	before := w.saved
	w.until(time.Minute, "running", func(*plan.Plan) bool { return len(w.liveTasks(jobAddr("b"))) == 2 })
	packed := slices.Clone(w.job(jobAddr("b")).Slices)
	w.saved = before // nothing of that was ever saved
	w.crash()
	w.settle(time.Minute)
	w.wantJob(jobAddr("b"), schema.JobRunning, 1, 0, 0)
	if got := w.job(jobAddr("b")).Slices; !slices.Equal(got, packed) {
		t.Errorf("b is on %v, and was on %v", got, packed)
	}
	w.wantJob(jobAddr("a"), schema.JobRunning, 1, 0, 0)
}

func TestUnrecordedPackedWithoutJobGo(t *testing.T) {
	w := newWorld(t)
	pool := cpuPool("pool", 4, 1)
	w.accept(withPools(configuration(newJob("a", packed("pool", 1, 1))), pool))
	w.settle(time.Minute)
	before := w.doc
	w.accept(withPools(configuration(newJob("a", packed("pool", 1, 1)), newJob("b", packed("pool", 1, 1))), pool))
	w.until(time.Minute, "running", func(*plan.Plan) bool { return len(w.liveTasks(jobAddr("b"))) == 1 })
	w.saved = before
	w.crash()
	w.settle(time.Minute)
	if live := w.liveTasks(jobAddr("b")); len(live) > 0 {
		t.Errorf("b, which is not declared, runs on %v", live)
	}
	w.wantJob(jobAddr("a"), schema.JobRunning, 1, 0, 0)
	if len(w.packedNames(w.packedOn(jobAddr("a"))[0], 0)) != 1 {
		t.Errorf("its packed task is still there\n%s", w.describe())
	}
}

func TestPoolGrowsForPacked(t *testing.T) {
	w := newWorld(t)
	pool := cpuPool("pool", 4, 3)
	pool.Min.Slices = 1
	w.accept(withPools(configuration(numbered(10, packed("pool", 1, 1))...), pool))
	w.settle(2 * time.Minute)
	if n := w.machines() - 1; n != 3 {
		t.Errorf("there are %d slices, want 3", n)
	}
	w.accept(withPools(configuration(append(numbered(10, packed("pool", 1, 1)), newJob("big", packed("pool", 4, 1)))...), pool))
	w.run(time.Minute)
	w.wantWaits(jobAddr("big"), "no room for 4 CPU")
}
