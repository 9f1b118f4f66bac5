package incremental

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func newFirst(j *schema.Job) { j.Lifecycle.CreateBeforeDestroy = true }

// replacing is a world in which a job with create_before_destroy runs, and the
// same with another shape is asked for.
func replacing(t *testing.T, options ...jobOption) (*world, schema.Address) {
	t.Helper()
	w := up(t, configuration(newJob("a", append(options, newFirst)...)))
	w.accept(configuration(newJob("a", append(options, newFirst, onTPU("v5litepod-4"))...)))
	return w, jobAddr("a")
}

// follow steps until a job is settled and calls see after every step.
func (w *world) follow(within time.Duration, see func()) {
	w.t.Helper()
	calm := 0
	w.until(within, "settled", func(p *plan.Plan) bool {
		see()
		if calm++; !p.Empty() || len(p.Pending) > 0 {
			calm = 0
		}
		return calm == 2
	})
}

func TestNewSlicesComeFirst(t *testing.T) {
	for name, options := range map[string][]jobOption{
		"one slice":        nil,
		"a gang of slices": {onSlices(3)},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := replacing(t, options...)
			w.bootTakes = 20 * time.Second
			old := slices.Clone(w.job(a).Slices)
			n, both := len(old), 0
			p := w.step(500 * time.Millisecond)
			if c := changeOn(p, a); c.Verb != plan.VerbReplace || c.Reason != "its new slices come first" {
				t.Errorf("the plan shows %s (%s)", c.Verb, c.Reason)
			}
			for _, action := range p.Actions {
				if action.Verb == plan.CreateSlice && !action.AfterSave {
					t.Errorf("%s is asked for before the state knows what it is for", action.Slice.Name)
				}
			}
			w.follow(2*time.Minute, func() {
				if len(w.last.Drift) > 0 {
					t.Fatalf("shown as drift: %+v", w.last.Drift)
				}
				live := len(w.liveTasks(a))
				up := 0
				for _, slice := range w.job(a).Staged {
					if s := w.doc.Slices[slice]; s != nil && !s.UpAt.IsZero() {
						up++
					}
				}
				if up < n && len(w.job(a).Staged) > 0 && live != n {
					t.Fatalf("%d of %d new slices are up, and %d tasks run\n%s", up, n, live, w.describe())
				}
				if len(w.slices) > n+1 {
					both++
				}
			})
			w.wantJob(a, schema.JobRunning, 2, 0, 0)
			j := w.job(a)
			if both < 20 {
				t.Errorf("old and new slices were there together in %d steps only", both)
			}
			for i, slice := range j.Slices {
				if slices.Contains(old, slice) || w.slices[slice].spec.TPU != "v5litepod-4" || w.slices[slice].spec.Index != n+i {
					t.Errorf("it runs on %v after %v", j.Slices, old)
				}
			}
			if len(j.Staged) > 0 || len(w.doc.Slices) != n || len(w.slices) != n+1 {
				t.Errorf("left: staged %v, recorded %d, there %d; want none, %d, and %d with the foreign one", j.Staged, len(w.doc.Slices), len(w.slices), n, n+1)
			}
			// And back: the first names are free again.
			w.mark(a, func(j *state.Job) { j.Replace = true })
			w.settle(2 * time.Minute)
			if got := w.job(a); got.Attempt != 3 || !slices.Equal(got.Slices, old) {
				t.Errorf("replaced again it is at attempt %d on %v, want 3 on %v", got.Attempt, got.Slices, old)
			}
		})
	}
}

// The jobs of a group are replaced together: none is stopped before all new
// slices are up.
func TestGroupIsReplacedTogether(t *testing.T) {
	with := func(tpu string) schema.Desired {
		return configuration(
			newJob("one", inGroup("g"), newFirst, onTPU(tpu)), newJob("two", inGroup("g"), newFirst, onTPU(tpu), onSlices(2)),
			newJob("stays", inGroup("g")),
		)
	}
	one, two, stays := memberAddr("g", "one"), memberAddr("g", "two"), memberAddr("g", "stays")
	w := up(t, with("v5litepod-4"))
	w.capacity = len(w.slices) + 2 // one too few
	w.accept(with("v5litepod-8"))
	w.run(3 * time.Minute)
	for _, addr := range []schema.Address{one, two, stays} {
		w.wantJob(addr, schema.JobRunning, 1, 0, 0)
	}
	w.capacity = 0
	w.settle(20 * time.Minute)
	w.wantJob(one, schema.JobRunning, 2, 0, 0)
	w.wantJob(two, schema.JobRunning, 2, 0, 0)
	w.wantJob(stays, schema.JobRunning, 1, 0, 0)
	if first, second := w.job(one).Last().StartedAt, w.job(two).Last().StartedAt; second.Sub(first).Abs() > 2*time.Second {
		t.Errorf("they started again at %v and %v", first, second)
	}
}

// TestChangedBack: what is not wanted any more is deleted, and the job never noticed.
func TestChangedBack(t *testing.T) {
	for name, back := range map[string]schema.Desired{
		"to what runs":             configuration(newJob("a", newFirst)),
		"to what runs, no block":   configuration(newJob("a")),
		"to what must not be lost": configuration(newJob("a", newFirst, protected, onTPU("v5litepod-8"))),
	} {
		t.Run(name, func(t *testing.T) {
			w, a := replacing(t)
			w.bootTakes = 20 * time.Second
			w.run(5 * time.Second)
			if len(w.slices) != 3 {
				t.Fatalf("%d slices are there, want the foreign one, the old and the new\n%s", len(w.slices), w.describe())
			}
			w.accept(back)
			p := w.step(500 * time.Millisecond)
			if len(p.Drift) > 0 {
				t.Errorf("shown as drift: %+v", p.Drift)
			}
			w.run(time.Minute)
			w.wantJob(a, schema.JobRunning, 1, 0, 0)
			if len(w.slices) != 2 || len(w.doc.Slices) != 1 || len(w.job(a).Staged) > 0 {
				t.Errorf("left:\n%s", w.describe())
			}
		})
	}
}

// TestOldSlicesGoFirst: where there is no room for both, the plan says so.
func TestOldSlicesGoFirst(t *testing.T) {
	job := func(options ...jobOption) schema.Job { return newJob("a", append(options, newFirst)...) }
	pool := newPool("p", "", 3)
	for name, c := range map[string]struct {
		was, is schema.Desired
		quota   int
		why     string
	}{
		"a limit": {limited(configuration(job()), 1), limited(configuration(job(onTPU("v5litepod-4"))), 1), 0, "no room for both: provider local: needs 1 more slice, 1 of 1 are in use"},
		"a pool":  {withPools(configuration(job(from("p"))), pool), withPools(configuration(job(from("p"), onSlices(3))), pool), 0, "no room for both: reservation.p: needs 3 of its 3 slices at once, 2 free"},
		"a quota": {configuration(job()), configuration(job(onTPU("v5litepod-4"))), 2, "no room for both: slice a-1-"},
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, c.was)
			w.quota = c.quota
			w.accept(c.is)
			said := false
			w.follow(5*time.Minute, func() {
				said = said || strings.Contains(changeOn(w.last, jobAddr("a")).Reason, c.why)
			})
			if !said {
				t.Errorf("no plan says %q", c.why)
			}
			w.wantJob(jobAddr("a"), schema.JobRunning, 2, 0, 0)
			if got, want := len(w.job(jobAddr("a")).Slices), c.is.Jobs[0].Resources.Slices; got != want {
				t.Errorf("it runs on %d slices, want %d", got, want)
			}
		})
	}
}

// What is out of stock is waited for while the old one runs.
func TestStockoutIsWaitedFor(t *testing.T) {
	w, a := replacing(t)
	w.capacity = len(w.slices)
	w.run(5 * time.Minute)
	w.wantJob(a, schema.JobRunning, 1, 0, 0)
	if got := w.job(a).Reason; !strings.Contains(got, "there is no more capacity") {
		t.Errorf("reason: got %q", got)
	}
	w.capacity = 0
	w.settle(20 * time.Minute)
	w.wantJob(a, schema.JobRunning, 2, 0, 0)
}

// Room that is about to be free is waited for.
func TestRoomThatIsBeingMade(t *testing.T) {
	w := up(t, limited(configuration(newJob("a", newFirst), newJob("b")), 2))
	w.accept(limited(configuration(newJob("a", newFirst, onTPU("v5litepod-4"))), 2))
	w.follow(5*time.Minute, func() {
		if strings.Contains(changeOn(w.last, jobAddr("a")).Reason, "old slices go first") {
			t.Fatal("the old slice goes first although job.b makes room")
		}
	})
	w.wantJob(jobAddr("a"), schema.JobRunning, 2, 0, 0)
}

// Of a reservation, the new slices are others of it.
func TestOtherSlicesOfAReservation(t *testing.T) {
	a := jobAddr("a")
	with := func(n int, options ...jobOption) schema.Desired {
		return withPools(configuration(newJob("a", append(options, from("p"), newFirst, triggeredBy("t"))...)), newPool("p", "", n))
	}
	w := up(t, with(2))
	old := w.sliceOf(a, 0)
	w.mark(a, func(j *state.Job) { j.Replace = true })
	w.follow(time.Minute, func() {
		if j := w.job(a); len(j.Staged) > 0 && slices.Contains(j.Slices, j.Staged[0]) {
			t.Fatalf("it is to take over from itself: %v, %v", j.Slices, j.Staged)
		}
	})
	w.wantJob(a, schema.JobRunning, 2, 0, 0)
	if got := w.sliceOf(a, 0); got == old || w.slices[old] == nil {
		t.Errorf("it runs on %s after %s, which is there: %t; want the other one, true", got, old, w.slices[old] != nil)
	}
	// Out of the reservation.
	w.accept(withPools(configuration(newJob("a", newFirst)), newPool("p", "", 2)))
	w.settle(time.Minute)
	w.wantJob(a, schema.JobRunning, 3, 0, 0)
	if len(w.doc.Slices) != 3 {
		t.Errorf("%d slices are recorded, want 3", len(w.doc.Slices))
	}
	// And back into it.
	w.accept(with(2))
	w.settle(time.Minute)
	w.wantJob(a, schema.JobRunning, 4, 0, 0)
	if len(w.doc.Slices) != 2 {
		t.Errorf("%d slices are recorded, want 2", len(w.doc.Slices))
	}
}

// What happens to the old attempt while the new slices come up.
func TestLossWhileStaged(t *testing.T) {
	for name, c := range map[string]struct {
		happen      func(w *world, a schema.Address)
		attempt     int
		failures    int
		preemptions int
	}{
		"the old slice is lost": {func(w *world, a schema.Address) { w.preempt(w.sliceOf(a, 0)) }, 2, 0, 1},
		"the old task fails":    {func(w *world, a schema.Address) { w.fail(w.sliceOf(a, 0), 0, 3) }, 2, 0, 0},
		"the new slice is lost": {func(w *world, a schema.Address) { w.vanish(w.job(a).Staged[0]) }, 2, 0, 0},
		"another shape still":   {func(w *world, a schema.Address) { w.accept(configuration(newJob("a", newFirst, onTPU("v5litepod-8")))) }, 2, 0, 0},
		"more slices": {func(w *world, a schema.Address) {
			w.accept(configuration(newJob("a", newFirst, onTPU("v5litepod-4"), onSlices(2))))
		}, 2, 0, 0},
		"the block is gone":        {func(w *world, a schema.Address) { w.accept(configuration(newJob("a", onTPU("v5litepod-4")))) }, 2, 0, 0},
		"the controller crashes":   {func(w *world, _ schema.Address) { w.crash() }, 2, 0, 0},
		"the provider is away":     {func(w *world, _ schema.Address) { w.unreachable = true; w.run(20 * time.Second); w.unreachable = false }, 2, 0, 0},
		"only the program changes": {func(w *world, _ schema.Address) { w.accept(configuration(newJob("a", newFirst, withEnv("A", "b")))) }, 2, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := replacing(t)
			w.bootTakes = 15 * time.Second
			w.run(5 * time.Second)
			c.happen(w, a)
			w.settle(10 * time.Minute)
			j := w.job(a)
			if j.Status != schema.JobRunning || j.Attempt != c.attempt || !schema.EqualJobs(j.Spec, &w.doc.Desired.Jobs[0]) || len(j.Staged) > 0 {
				t.Errorf("got %s, attempt %d, staged %v, as declared %t; want running, %d\n%s",
					j.Status, j.Attempt, j.Staged, schema.EqualJobs(j.Spec, &w.doc.Desired.Jobs[0]), c.attempt, w.describe())
			}
			if len(w.slices) != 1+len(j.Slices) || len(w.doc.Slices) != len(j.Slices) {
				t.Errorf("left:\n%s", w.describe())
			}
		})
	}
}

// TestCrashAnywhereWhileReplacing crashes a controller after every step of a
// replacement in turn, with what it had saved by then; the oracle sees to it that
// nothing runs twice.
func TestCrashAnywhereWhileReplacing(t *testing.T) {
	for step := range 40 {
		for _, lost := range []bool{false, true} {
			w, a := replacing(t, onSlices(2))
			w.createTakes, w.bootTakes = 3*time.Second, 500*time.Millisecond
			for range step {
				w.step(250 * time.Millisecond)
			}
			if lost { // what came since the last save is
				w.save()
				for range 24 {
					w.step(40 * time.Millisecond)
				}
			}
			w.crash()
			w.settle(5 * time.Minute)
			if j := w.job(a); j.Attempt != 2 || len(j.Staged) > 0 || len(w.slices) != 3 || len(w.doc.Slices) != 2 {
				t.Fatalf("after a crash at step %d (lost %t) it is at attempt %d, want 2, and nothing left\n%s", step, lost, j.Attempt, w.describe())
			}
		}
	}
}

// An attempt on the new slices that was started and not recorded is found there.
func TestUnrecordedAttemptOnNewSlices(t *testing.T) {
	w, a := replacing(t)
	var before *state.Document
	w.until(time.Minute, "started again", func(*plan.Plan) bool {
		if len(w.job(a).Staged) > 0 {
			before = w.doc.Clone()
		}
		return w.job(a).Attempt == 2
	})
	w.run(2 * time.Second)
	w.doc, w.saved = before, before
	w.crash()
	w.step(500 * time.Millisecond)
	if last := w.job(a).Last(); last.Number != 2 || !last.Resumed {
		t.Errorf("found: %+v, want attempt 2", last)
	}
	w.settle(time.Minute)
	w.wantJob(a, schema.JobRunning, 2, 0, 0)
	if len(w.slices) != 2 || len(w.job(a).Staged) > 0 {
		t.Errorf("left:\n%s", w.describe())
	}
}

// What is to take over is no other job's to draw.
func TestStagedSlicesOfAReservationAreHeld(t *testing.T) {
	a, b := newJob("a", from("p"), newFirst, triggeredBy("s")), newJob("b", from("p"))
	w := up(t, withPools(configuration(a), newPool("p", "", 2)))
	w.stopTakes = 20 * time.Second
	triggeredBy("t")(&a)
	w.accept(withPools(configuration(a), newPool("p", "", 2)))
	w.run(2 * time.Second)
	staged := w.job(a.Addr).Staged
	w.accept(withPools(configuration(a, b), newPool("p", "", 2)))
	w.run(5 * time.Second)
	if len(staged) != 1 || len(w.job(b.Addr).Slices) > 0 {
		t.Errorf("%v is to take over, and job.b was given %v", staged, w.job(b.Addr).Slices)
	}
	w.settle(5 * time.Minute)
	if got := w.job(a.Addr).Slices; !slices.Equal(got, staged) || slices.Equal(w.job(b.Addr).Slices, staged) {
		t.Errorf("job.a runs on %v, job.b on %v; want job.a on %v", got, w.job(b.Addr).Slices, staged)
	}
}

// What is stopped or removed while its new slices come up leaves none of them.
func TestGoneWhileStaged(t *testing.T) {
	for name, gone := range map[string]func(*world, schema.Address){
		"removed": func(w *world, _ schema.Address) { w.accept(schema.Desired{}) },
		"removed, crash": func(w *world, _ schema.Address) {
			w.accept(schema.Desired{})
			w.step(time.Second)
			w.crash()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := replacing(t)
			w.bootTakes = 20 * time.Second
			w.run(5 * time.Second)
			gone(w, a)
			w.follow(5*time.Minute, func() {
				if len(w.last.Drift) > 0 {
					t.Fatalf("shown as drift: %+v", w.last.Drift)
				}
			})
			if len(w.slices) != 1 || len(w.doc.Slices)+len(w.doc.Jobs)+len(w.assignments) > 0 {
				t.Errorf("left:\n%s", w.describe())
			}
		})
	}
}
