package incremental

import (
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// An end of which nothing is known is neither the program's nor the host's: it
// spends the budget of neither, is counted for itself, and is not retried for ever.
func TestUnknownEndSpendsNoOtherBudget(t *testing.T) {
	addr := jobAddr("a")
	unknown := program{runs: time.Second, code: 1, state: schema.TaskExitUnknown}
	w := newWorld(t)
	w.exits(addr, unknown, unknown, program{runs: time.Second, code: 3}, unknown, program{runs: time.Second})
	w.accept(configuration(newJob("a", failures(1), preemptions(3))))
	w.until(time.Hour, "done", func(*plan.Plan) bool { return w.doc.Jobs[addr].Status.Ended() })
	w.wantJob(addr, schema.JobSucceeded, 5, 1, 0)
	if n := w.job(addr).UnknownEnds; n != 3 {
		t.Errorf("%d unknown ends, want 3", n)
	}

	w = newWorld(t)
	w.exits(addr, unknown)
	w.accept(configuration(newJob("a", failures(5), preemptions(2))))
	var delays []time.Duration // after each end, from the step that saw it on
	w.until(time.Hour, "done", func(*plan.Plan) bool {
		if j := w.doc.Jobs[addr]; j.UnknownEnds > len(delays) {
			delays = append(delays, j.RetryAt.Sub(w.now.Add(-pace)))
		}
		return w.doc.Jobs[addr].Status.Ended()
	})
	w.wantJob(addr, schema.JobFailed, 3, 0, 0)
	j := w.job(addr)
	if last := j.Last(); j.UnknownEnds != 3 || last.Outcome != schema.TaskExitUnknown {
		t.Errorf("%d unknown ends, the last attempt ended as %s; want 3, %s", j.UnknownEnds, last.Outcome, schema.TaskExitUnknown)
	}
	if want := []time.Duration{0, time.Second, 2 * time.Second}; !slices.Equal(delays, want) {
		t.Errorf("delays after the ends: got %s, want %s", delays, want)
	}
}

// What is known counts for more than what is not, and a program is not blamed for
// failing beside a task whose end is unknown.
func TestUnknownEndAmongOthers(t *testing.T) {
	for _, c := range []struct {
		ends [2]schema.TaskState
		want schema.TaskState
	}{
		{[2]schema.TaskState{schema.TaskExitUnknown, schema.TaskPreempted}, schema.TaskPreempted},
		{[2]schema.TaskState{schema.TaskExitUnknown, schema.TaskWorkerFailed}, schema.TaskWorkerFailed},
		{[2]schema.TaskState{schema.TaskExitUnknown, schema.TaskFailed}, schema.TaskExitUnknown},
		{[2]schema.TaskState{schema.TaskExitUnknown, schema.TaskKilled}, schema.TaskExitUnknown},
		{[2]schema.TaskState{schema.TaskExitUnknown, schema.TaskSucceeded}, schema.TaskExitUnknown},
	} {
		for range 2 {
			c.ends[0], c.ends[1] = c.ends[1], c.ends[0]
			a := &state.Attempt{Tasks: []state.Task{{State: c.ends[0]}, {State: c.ends[1]}}}
			if got, _ := plan.AttemptOutcome(a); got != c.want {
				t.Errorf("%v: got %s, want %s", c.ends, got, c.want)
			}
		}
	}
}

// An attempt has ended when its last task has, and not when a step saw that.
func TestEndOfAnAttempt(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := start.Add(time.Hour)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	for name, c := range map[string]struct {
		ends []time.Time
		want time.Time
	}{
		"one":                      {[]time.Time{at(4 * time.Second)}, at(4 * time.Second)},
		"the last":                 {[]time.Time{at(9 * time.Second), at(4 * time.Second)}, at(9 * time.Second)},
		"one left no end":          {[]time.Time{at(4 * time.Second), {}}, now},
		"no tasks":                 {nil, now},
		"a clock that is fast":     {[]time.Time{at(2 * time.Hour)}, now},
		"a clock that is slow":     {[]time.Time{at(-time.Minute)}, start},
		"the moment of the start":  {[]time.Time{start}, start},
		"the moment of the record": {[]time.Time{now}, now},
	} {
		a := &state.Attempt{StartedAt: start}
		for _, end := range c.ends {
			a.Tasks = append(a.Tasks, state.Task{EndedAt: end})
		}
		if got := lifecycle.EndOf(a, now); !got.Equal(c.want) {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// A job that ended while no step was made has its own end.
func TestEndWhileUnwatched(t *testing.T) {
	addr := jobAddr("a")
	w := newWorld(t)
	w.exits(addr, program{runs: 4 * time.Second})
	w.accept(configuration(newJob("a")))
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.doc.Jobs[addr].Status == schema.JobRunning })
	began := w.job(addr).Last().StartedAt
	for range 20 {
		w.now = w.now.Add(time.Second)
		w.live()
	}
	w.settle(time.Minute)
	j := w.job(addr)
	if took := j.Last().EndedAt.Sub(began); took < 4*time.Second || took > 8*time.Second || !j.End().Equal(j.Last().EndedAt) {
		t.Errorf("a job of 4 s took %s and ended at %s", took, j.End())
	}
}
