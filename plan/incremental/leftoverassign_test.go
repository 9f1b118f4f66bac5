package incremental

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// leaveAssignment puts a run of an earlier controller into the mailbox of a slice at the moment
// at which an attempt is written there, so that the attempt was decided without it and its write
// is refused. above is by how much the earlier one's generation is higher than the attempt's.
func leaveAssignment(w *world, attempt int, on func(*state.Run) bool, above int64, epoch uint64, run state.Run) (planted *plan.Assigned) {
	planted = &plan.Assigned{}
	w.loses = func(a plan.Action) bool {
		is := a.Assignment
		if a.Verb != plan.Assign || is.Run == nil || is.Run.Attempt != attempt || !on(is.Run) || planted.Object != 0 {
			return false
		}
		run.SliceIndex = is.Run.SliceIndex
		run.Peers = is.Run.Peers
		w.generation++
		*planted = plan.Assigned{Object: w.generation, Assignment: state.Assignment{
			Slice: is.Slice, Stack: is.Stack, Epoch: epoch, Generation: is.Generation + above, Run: &run,
		}}
		w.assignments[is.Slice] = *planted
		return false
	}
	w.until(time.Minute, "assigned", func(*plan.Plan) bool { return planted.Object != 0 })
	w.loses = func(plan.Action) bool { return false }
	return planted
}

// liveAlone lets everybody but the controller take some steps.
func (w *world) liveAlone(steps int) {
	for range steps {
		w.now = w.now.Add(pace)
		w.live()
	}
}

// TestLeftoverAssignmentIsReplaced: an attempt begins on a slice whose mailbox has, unread, the
// assignment of an earlier one. That counts as the attempt's own under no generation: hosts run
// what it names, so they are stopped, and the next attempt is assigned under a higher generation.
// The slice stays, and no failure is counted.
func TestLeftoverAssignmentIsReplaced(t *testing.T) {
	a := jobAddr("a")
	any := func(*state.Run) bool { return true }
	for name, c := range map[string]struct {
		desired schema.Desired
		on      func(*state.Run) bool
	}{
		"own slice":           {configuration(newJob("a", onTPU("v5litepod-16"))), any},
		"one of two slices":   {configuration(newJob("a", onTPU("v5litepod-16"), onSlices(2))), func(run *state.Run) bool { return run.SliceIndex == 1 }},
		"slice of a pool":     {withPools(configuration(newJob("a", from("p"))), newPool("p", "v5litepod-16", 1)), any},
		"member of a group":   {configuration(newJob("a", inGroup("g")), newJob("b", inGroup("g"))), any},
		"packed on a machine": {withPools(configuration(newJob("a", from("p"), packed("p", 0.5, 1))), newPool("p", "", 1)), any},
	} {
		for _, above := range []int64{0, 1} {
			for _, age := range []uint64{0, 1} { // of its epoch
				for _, runs := range []bool{false, true} {
					t.Run(strings.Join([]string{name, []string{"same generation", "newer generation"}[above], []string{"same epoch", "older epoch"}[age],
						map[bool]string{false: "unread", true: "running"}[runs]}, "/"), func(t *testing.T) {
						addr := a
						if len(c.desired.Groups) > 0 {
							addr.Group = "g"
						}
						w := up(t, c.desired)
						earlier := *w.assignments[w.sliceOf(addr, 0)].Run
						epoch := w.epoch + 1 - age
						w.crash()
						for _, name := range w.job(addr).Slices {
							w.vanish(cmp.Or(w.doc.Slices[name].Spec.On, name))
						}
						left := leaveAssignment(w, 2, c.on, above, epoch, earlier)
						slice := w.slices[left.Slice]
						if runs {
							w.liveAlone(4)
							if h := slice.hosts[0]; !h.live || h.task.Attempt != 1 {
								t.Fatalf("host 0 does not run the earlier attempt: %+v", h.task)
							}
						}
						w.until(time.Minute, "up", func(p *plan.Plan) bool {
							if j := w.job(addr); j.Status != schema.JobRunning && !slices.ContainsFunc(p.Pending, func(p plan.Pending) bool { return p.Addr == addr }) {
								t.Fatalf("it is %s without a reason", j.Status)
							}
							return w.job(addr).Ready
						})
						w.settle(time.Minute)
						w.wantJob(addr, schema.JobRunning, 3, 0, 1)
						is := w.assignments[left.Slice]
						if is.Run == nil || is.Run.Attempt != 3 || is.Generation <= left.Generation {
							t.Errorf("slice %s is assigned %+v, want attempt 3 above generation %d", left.Slice, is.Assignment, left.Generation)
						}
						if w.slices[left.Slice] != slice {
							t.Errorf("slice %s was deleted", left.Slice)
						}
						second := w.job(addr).Attempts[1]
						if want := "slice " + left.Slice + " was told to run attempt 1 of " + addr.String(); second.Outcome != schema.TaskKilled || second.Reason != want {
							t.Errorf("attempt 2 ended %s: %s, want killed: %s", second.Outcome, second.Reason, want)
						}
					})
				}
			}
		}
	}
}

// TestOlderLeftoverThatRunsIsStoppedFirst: the same where the attempt has the higher generation. Its hosts
// would stop the earlier one each at its own time, and so run both at once.
func TestOlderLeftoverThatRunsIsStoppedFirst(t *testing.T) {
	a := jobAddr("a")
	for name, runs := range map[string]bool{"unread": false, "running": true} {
		t.Run(name, func(t *testing.T) {
			w := up(t, configuration(newJob("a", onTPU("v5litepod-16"))))
			slice := w.sliceOf(a, 0)
			earlier := *w.assignments[slice].Run
			w.vanish(slice)
			left := leaveAssignment(w, 2, func(*state.Run) bool { return true }, 0, w.epoch, earlier)
			attempts := 2
			if runs {
				w.liveAlone(4)
				attempts = 3
			}
			w.mark(a, func(j *state.Job) {
				j.Attempts = slices.Clone(j.Attempts)
				j.Last().Generation = left.Generation + 1
			})
			w.planner = w.newPlanner()
			w.settle(time.Minute) // the oracle sees to the order
			w.wantJob(a, schema.JobRunning, attempts, 0, 1)
		})
	}
}

// TestLeftoverOfAnotherJobCountsForNone: the mailbox of a pool's slice has, unread, what another job was
// assigned under the same attempt number and generation. How that one's task ended is no end of the
// attempt that was to begin there.
func TestLeftoverOfAnotherJobCountsForNone(t *testing.T) {
	a, b := jobAddr("a"), jobAddr("b")
	w := up(t, withPools(configuration(newJob("a", from("p"))), newPool("p", "", 1)))
	other := *w.assignments[w.sliceOf(a, 0)].Run
	w.vanish(w.sliceOf(a, 0))
	w.accept(withPools(configuration(), newPool("p", "", 1)))
	w.settle(time.Minute)
	w.accept(withPools(configuration(newJob("b", from("p"))), newPool("p", "", 1)))
	w.exits(a, program{runs: time.Second})
	left := leaveAssignment(w, 1, func(*state.Run) bool { return true }, 0, w.epoch, other)
	w.liveAlone(8)
	if r := w.reports[hostKey{left.Slice, 0}].Task; r == nil || r.State != schema.TaskSucceeded || r.Generation != left.Generation {
		t.Fatalf("the other job's task is %+v, want one that has succeeded", r)
	}
	w.settle(time.Minute)
	w.wantJob(b, schema.JobRunning, 2, 0, 0)
}

// TestLeftoverStopIsReplaced: the same with an assignment that says to run nothing.
func TestLeftoverStopIsReplaced(t *testing.T) {
	a := jobAddr("a")
	w := newWorld(t)
	w.accept(configuration(newJob("a")))
	w.loses = func(p plan.Action) bool {
		if p.Verb == plan.Assign && w.generation == 0 {
			w.generation++
			w.assignments[p.Slice.Name] = plan.Assigned{Assignment: state.Assignment{Slice: p.Slice.Name, Epoch: w.epoch, Generation: p.Assignment.Generation}, Object: w.generation}
		}
		return false
	}
	w.settle(time.Minute)
	w.wantJob(a, schema.JobRunning, 2, 0, 0)
}

// TestStopIsAboveItsAttempt: an attempt is stopped while its assignment is not read, and no report of
// what carried it out. Its hosts have confirmed the stop no sooner than they were told.
func TestStopIsAboveItsAttempt(t *testing.T) {
	a := jobAddr("a")
	w := up(t, configuration(newJob("a")))
	w.accept(configuration(newJob("a", withEnv("X", "1"))))
	obs := w.observe()
	obs.Assignments, obs.Hosts = nil, nil
	p := reconcile.Diff(&w.doc.Desired, w.doc, obs, w.now)
	if last := p.Next.Jobs[a].Last(); last.StopGeneration <= last.Generation {
		t.Errorf("generation %d is stopped with generation %d", last.Generation, last.StopGeneration)
	}
}
