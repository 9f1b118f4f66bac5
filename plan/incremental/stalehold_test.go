package incremental

import (
	"fmt"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// A step gives a slice to another job, whose start is assigned before the state is saved
// again. The next controller finds the slice recorded as the former job's, which does not
// use it any more: it is the latter's.
func TestSliceIsWhoseItWasAssignedAfterTheLastSave(t *testing.T) {
	whole, part := from("pool"), packed("pool", 1, 1)
	for name, of := range map[string]struct{ former, latter jobOption }{
		"a packed task, then a whole slice": {part, whole},
		"a whole slice, then a packed task": {whole, part},
		"a whole slice, then a whole slice": {whole, whole},
		"a packed task, then a packed task": {packed("pool", 4, 1), part},
	} {
		for n := range 12 {
			runs, unreachable, steps := n%2 == 1, n/2%2 == 1, 1+2*(n/4) // of the latter's start, before the crash
			t.Run(fmt.Sprintf("%s, runs %t, unreachable %t, after %d steps", name, runs, unreachable, steps), func(t *testing.T) {
				w := newWorld(t)
				former := newJob("former", of.former, inBand(schema.BandBatch))
				latter := newJob("latter", of.latter, inBand(schema.BandProduction))
				pool := cpuPool("pool", 4, 1)
				w.accept(withPools(configuration(former), pool))
				w.step(1500 * time.Millisecond)
				if runs {
					w.run(5 * time.Second)
				}
				w.stopTakes = 40 * time.Millisecond
				w.unreachable = !runs // so that nothing begins on the slice, which is up
				w.accept(withPools(configuration(former, latter), pool))
				w.step(40 * time.Millisecond)
				w.unreachable = false
				for len(w.doc.Jobs[latter.Addr].Slices) == 0 {
					w.step(40 * time.Millisecond)
				}
				for range steps - 1 {
					w.step(40 * time.Millisecond)
				}
				if len(w.saved.Jobs[former.Addr].Slices) == 0 {
					t.Fatalf("the slice is recorded as the latter's\n%s", w.describe())
				}
				before := w.saved.Jobs[former.Addr]
				w.crash()
				w.unreachable = unreachable
				w.run(2 * time.Second)
				w.unreachable = false
				w.run(6 * time.Second)
				w.wantJob(latter.Addr, schema.JobRunning, 1, 0, 0)
				if j := w.job(former.Addr); j.Attempt != before.Attempt || len(j.Slices) > 0 {
					t.Errorf("job.former: got attempt %d on %q, want %d and no slices\n%s", j.Attempt, j.Slices, before.Attempt, w.describe())
				}
			})
		}
	}
}

// The state is older than an assignment of a job that is declared no more, whose hosts are
// about to begin. No other job's tasks begin beside that.
func TestNothingBeginsBesideARunThatIsAboutTo(t *testing.T) {
	for name, next := range map[string]jobOption{"a packed task": packed("pool", 1, 1), "a whole slice": from("pool")} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			pool := cpuPool("pool", 4, 1)
			w.accept(withPools(configuration(), pool))
			w.run(20 * time.Second)
			w.accept(withPools(configuration(newJob("next", next)), pool))
			before := w.saved
			w.accept(withPools(configuration(newJob("gone", from("pool"))), pool))
			w.until(time.Minute, "assigned", func(*plan.Plan) bool { return w.assignments["pool-0-b61234ac"].Run != nil })
			w.saved = before
			w.crash()
			w.run(20 * time.Second)
			w.wantJob(jobAddr("next"), schema.JobRunning, 1, 0, 0)
		})
	}
}

// The state is older than a packed task, which is assigned no more and still being stopped.
func TestNothingBeginsBesideAPackedTaskThatIsLeft(t *testing.T) {
	for name, next := range map[string]jobOption{"a packed task": packed("pool", 4, 1), "a whole slice": from("pool")} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			pool := cpuPool("pool", 4, 1)
			w.accept(withPools(configuration(), pool))
			w.run(10 * time.Second)
			w.accept(withPools(configuration(newJob("next", next)), pool))
			before := w.saved
			w.accept(withPools(configuration(newJob("gone", packed("pool", 1, 1))), pool))
			w.run(10 * time.Second)
			w.stopTakes = 10 * time.Second
			w.accept(withPools(configuration(), pool))
			w.until(time.Minute, "taken off", func(*plan.Plan) bool { return len(w.assignments["pool-0-b61234ac"].PackedTasks) == 0 })
			w.saved = before
			w.crash()
			w.run(2 * time.Second)
			w.wantWaits(jobAddr("next"), "an older task on host 0 of slice pool-0-b61234ac is being stopped")
			w.run(20 * time.Second)
			w.wantJob(jobAddr("next"), schema.JobRunning, 1, 0, 0)
		})
	}
}

// Slices that are to take over are another job's likewise.
func TestStagedSliceIsWhoseItWasAssignedAfterTheLastSave(t *testing.T) {
	w := newWorld(t)
	former, latter := newJob("former", from("pool")), newJob("latter", from("pool"))
	former.Lifecycle.CreateBeforeDestroy = true
	pool := cpuPool("pool", 4, 2)
	w.accept(withPools(configuration(former), pool))
	w.run(10 * time.Second)
	w.accept(withPools(configuration(former, latter), pool))
	w.run(10 * time.Second)
	saved, was := w.doc.Clone(), *w.job(former.Addr)
	was.Replace, was.Staged = true, w.job(latter.Addr).Slices
	saved.Jobs[former.Addr] = &was
	delete(saved.Jobs, latter.Addr)
	w.saved = saved
	w.crash()
	w.run(20 * time.Second)
	w.wantJob(latter.Addr, schema.JobRunning, 1, 0, 0)
	w.wantJob(former.Addr, schema.JobRunning, 2, 0, 0)
}
