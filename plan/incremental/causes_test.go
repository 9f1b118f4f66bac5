package incremental

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// An attempt that was assigned and not recorded reads afterwards as if its controller
// had lived: why it began and when, and how the one before it ended. Nothing of it is
// drift, neither for the next controller nor for a reader of the older state.
func TestResumedAttemptKeepsItsHistory(t *testing.T) {
	w := newWorld(t)
	a := jobAddr("a")
	w.program = func(run *state.Run, _ int) program {
		if run.Attempt == 1 {
			return program{runs: 20 * time.Second, code: 3}
		}
		return program{}
	}
	w.accept(configuration(newJob("a", failures(3))))
	w.until(time.Minute, "up", func(*plan.Plan) bool { return w.job(a).Ready })
	var before *state.Document
	w.until(time.Minute, "started again", func(*plan.Plan) bool {
		if w.job(a).Attempt == 1 {
			before = w.doc.Clone()
		}
		return w.job(a).Attempt == 2
	})
	want := w.job(a)
	reader := reconcile.Diff(&before.Desired, before, w.observe(), w.now)
	w.doc, w.saved = before, before
	w.crash()
	p := w.step(500 * time.Millisecond)
	if len(p.Drift)+len(reader.Drift) > 0 {
		t.Errorf("drift: %+v, read by others %+v, want none", p.Drift, reader.Drift)
	}
	got := w.job(a)
	for i, is := range got.Attempts {
		was := want.Attempts[i]
		if is.Why != was.Why || !is.StartedAt.Equal(was.StartedAt) || is.Outcome != was.Outcome || is.Reason != was.Reason {
			t.Errorf("attempt %d: got %+v, want %+v", i+1, is, was)
		}
	}
	if len(got.Attempts) != 2 || !got.Attempts[1].Resumed || got.Failures != want.Failures {
		t.Errorf("got %+v, want attempt 2 resumed", got)
	}
	for _, task := range got.Attempts[0].Tasks {
		if !task.State.Ended() {
			t.Errorf("a task of attempt 1 is %s after its end", task.State)
		}
	}
	w.settle(time.Minute)
	w.wantJob(a, schema.JobRunning, 2, 1, 0)
}

// What an older fray assigned has no history: it is told what is known.
func TestResumedAttemptOfAnOlderFray(t *testing.T) {
	j := &state.Job{Attempts: []state.Attempt{{Number: 1, Slices: []string{"s"}, Tasks: []state.Task{{Slice: "s", State: schema.TaskRunning}}}}}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lifecycle.EndBefore(j, &state.Run{Attempt: 2}, now)
	last := j.Last()
	if last.Outcome != schema.TaskKilled || last.EndedAt != now || last.Tasks[0].State != schema.TaskKilled {
		t.Errorf("got %+v, want killed", last)
	}
	for _, text := range []string{last.Reason, last.Tasks[0].Reason, lifecycle.StartedBefore} {
		if strings.Contains(text, "adopted") || strings.Contains(text, "recorded") {
			t.Errorf("people read %q", text)
		}
	}
}

// Programs fail when a peer is gone. Only the first has failed, whatever its number
// and the first that is heard; the others went with it, and never read as failed.
func TestSiblingsOfAFailedTask(t *testing.T) {
	w := newWorld(t)
	a := jobAddr("a")
	first := 2
	w.program = func(run *state.Run, task int) program {
		switch {
		case run.Attempt > 1:
			return program{}
		case task == first:
			return program{runs: 20 * time.Second, code: 7}
		case task == 1:
			return program{} // it runs on until it is stopped
		}
		return program{runs: 20*time.Second + 50*time.Millisecond, code: 1}
	}
	w.accept(configuration(newJob("a", onTPU("v5litepod-16"), failures(3))))
	w.until(time.Minute, "up", func(*plan.Plan) bool { return w.job(a).Ready })
	var told []state.Event
	w.until(time.Minute, "started again", func(p *plan.Plan) bool {
		for i, task := range w.job(a).Attempts[0].Tasks {
			if i != first && task.State == schema.TaskFailed {
				t.Fatalf("task %d reads as failed: %s", i, task.Reason)
			}
		}
		told = append(told, change.Events(w.written, p, w.now)...)
		return w.job(a).Attempt == 2
	})
	ended := w.job(a).Attempts[0]
	if ended.EndedBy == nil || *ended.EndedBy != first || ended.Outcome != schema.TaskFailed || ended.Reason != "task 2 of 4: exit status 7" {
		t.Errorf("got %+v, want it ended by task %d", ended, first)
	}
	for i, want := range []struct {
		state  schema.TaskState
		reason string
		code   int
	}{
		{schema.TaskKilled, "ended after host 2 of job.a did: exit status 1", 1},
		{schema.TaskKilled, "told to stop", 0}, // the words of the simulated agent
		{schema.TaskFailed, "exit status 7", 7},
		{schema.TaskKilled, "ended after host 2 of job.a did: exit status 1", 1},
	} {
		task := ended.Tasks[i]
		code := 0
		if task.ExitCode != nil {
			code = *task.ExitCode
		}
		if task.State != want.state || task.Reason != want.reason || code != want.code {
			t.Errorf("task %d: got %s, %q, %d, want %+v", i, task.State, task.Reason, code, want)
		}
	}
	if got, want := lifecycle.StopText(w.job(a), &ended), "stopped because host 2 of job.a failed"; got != want {
		t.Errorf("others read %q, want %q", got, want)
	}
	wantPlainWords(t, told)
}

// The hosts of an attempt are told why they are to stop it.
func TestStopIsExplained(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, a schema.Address)
		want   string
	}{
		"a changed command": {func(w *world, _ schema.Address) {
			w.accept(configuration(newJob("a", onTPU("v5litepod-16"), failures(3), func(j *schema.Job) { j.Command = []schema.Text{schema.Plain("other")} })))
		}, "stopped: command changed"},
		"a task that failed": {func(w *world, a schema.Address) {
			w.exit(w.slices[w.sliceOf(a, 0)].hosts[3])
		}, "stopped because host 3 of job.a failed"},
	} {
		t.Run(name, func(t *testing.T) {
			a := jobAddr("a")
			w := newWorld(t)
			w.program = func(*state.Run, int) program { return program{} }
			w.accept(configuration(newJob("a", onTPU("v5litepod-16"), failures(3))))
			w.until(time.Minute, "up", func(*plan.Plan) bool { return w.job(a).Ready })
			for _, h := range w.slices[w.sliceOf(a, 0)].hosts {
				h.does.code = 1
			}
			c.change(w, a)
			got := ""
			w.until(time.Minute, "stopped", func(p *plan.Plan) bool {
				for i := range p.Actions {
					if action := &p.Actions[i]; action.Verb == plan.Assign && action.Assignment.Run == nil {
						got = cmp.Or(got, action.Assignment.Why)
					}
				}
				return got != "" || w.job(a).Status.Ended()
			})
			if got != c.want {
				t.Errorf("hosts read %q, want %q", got, c.want)
			}
		})
	}
}

func TestStopText(t *testing.T) {
	by := 1
	a := state.Attempt{Reason: "slice s is gone", Slices: []string{"s"}, Tasks: []state.Task{{Slice: "s"}, {Slice: "s", Host: 1, State: schema.TaskWorkerFailed}}}
	ended := a
	ended.EndedBy = &by
	j := &state.Job{Spec: &schema.Job{Addr: jobAddr("a")}}
	for want, got := range map[string]string{
		"stopped: slice s is gone":                 lifecycle.StopText(j, &a),
		"stopped because host 1 of job.a was lost": lifecycle.StopText(j, &ended),
		"stopped by request":                       lifecycle.StopText(&state.Job{Spec: j.Spec, JobRequests: state.JobRequests{Stop: true}}, &a),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRestartNamesWhatChanged(t *testing.T) {
	w := newWorld(t)
	a := jobAddr("a")
	w.accept(configuration(newJob("a")))
	w.until(time.Minute, "up", func(*plan.Plan) bool { return w.job(a).Ready })
	w.accept(configuration(newJob("a", func(j *schema.Job) { j.Command = []schema.Text{schema.Plain("other")} })))
	w.settle(time.Minute)
	j := w.job(a)
	if got := fmt.Sprint(j.Attempts[0].Changed, j.Attempts[0].Reason, "; ", j.Attempts[1].Why); got != "[command]command changed; restarted because command changed" {
		t.Errorf("got %s", got)
	}
	for n, want := range map[int]string{1: "a changed", 3: "a, b, c changed", 5: "a, b, c (and 2 more) changed"} {
		if got := change.ChangedText([]string{"a", "b", "c", "d", "e"}[:n], nil); got != want {
			t.Errorf("of %d: got %q, want %q", n, got, want)
		}
	}
}

func wantPlainWords(t *testing.T, told []state.Event) {
	t.Helper()
	for _, e := range told {
		for _, word := range []string{"adopted", "generation", "assignment", "did not live", "taken over"} {
			if strings.Contains(e.Text, word) {
				t.Errorf("people read %q", e.Text)
			}
		}
	}
}
