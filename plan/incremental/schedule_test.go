package incremental

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// every5 is a schedule of five minutes; the world begins at 3:04:05.
func every5(change ...func(*schema.Schedule)) jobOption {
	return func(j *schema.Job) {
		j.Schedule = &schema.Schedule{Cron: "*/5 * * * *", Overlap: schema.OverlapSkip, Missed: schema.MissedOnce}
		for _, f := range change {
			f(j.Schedule)
		}
	}
}

// at is a time of the world's day.
func clockAt(text string) time.Time {
	at, err := time.Parse("2006-01-02 15:04:05", "2026-01-02 "+text)
	if err != nil {
		panic(err)
	}
	return at
}

// until lets time pass to a time of the day.
func (w *world) untilClock(text string) {
	w.t.Helper()
	for w.now.Before(clockAt(text)) {
		w.step(min(2*time.Second, clockAt(text).Sub(w.now)))
	}
}

// ran is the runs of a job that were started, "1 at 03:05, 2 at 03:10".
func (w *world) ran(addr schema.Address) string {
	w.t.Helper()
	runs := w.oracle.runs[w.job(addr).ID]
	var found []string
	for n := 1; n <= 1000; n++ {
		if due, ok := runs[n]; ok {
			found = append(found, fmt.Sprintf("%d at %s", n, due.Format("15:04")))
		}
	}
	return strings.Join(found, ", ")
}

func (w *world) wantRan(addr schema.Address, want string) {
	w.t.Helper()
	if got := w.ran(addr); got != want {
		w.t.Fatalf("%s ran %q, want %q\n%s", addr, got, want, w.describe())
	}
}

func scheduledWorld(t *testing.T, runs time.Duration, options ...jobOption) *world {
	t.Helper()
	w := newWorld(t)
	w.exits(jobAddr("a"), program{runs: runs})
	w.accept(configuration(newJob("a", options...)))
	return w
}

func TestScheduledJobRunsAtItsTimes(t *testing.T) {
	a := jobAddr("a")
	w := scheduledWorld(t, time.Second, every5())
	p := w.step(time.Second)
	if j := w.job(a); j.Status != schema.JobScheduled || len(j.Slices) > 0 || len(p.Pending) > 0 {
		t.Fatalf("before its first run: %s\n%s", j.Status, w.describe())
	}
	p = w.step(time.Second)
	if !p.Empty() || !p.Wake.Equal(clockAt("03:05:00")) {
		t.Errorf("it wakes at %v, and its plan is empty: %v", p.Wake, p.Empty())
	}
	w.untilClock("03:04:58")
	w.wantRan(a, "")
	w.untilClock("03:06:00")
	w.wantRan(a, "1 at 03:05")
	if j := w.job(a); j.Status != schema.JobScheduled || len(j.Slices) > 0 || len(w.doc.Slices) > 0 || j.Scheduled.Outcome != schema.JobSucceeded {
		t.Errorf("after its run: %s\n%s", j.Status, w.describe())
	}
	w.untilClock("03:10:30")
	w.wantRan(a, "1 at 03:05, 2 at 03:10")
	last := w.job(a).Last()
	if last.Number != 2 || last.Run != 2 || !strings.HasPrefix(last.Why, "run 2 of its schedule, due at 2026-01-02T03:10:00Z") {
		t.Errorf("the second attempt: %+v", last)
	}
}

// A run has budgets of its own, its attempts are the run's, and a failed one is no end.
func TestFailedRunIsFollowedByTheNext(t *testing.T) {
	a := jobAddr("a")
	w := newWorld(t)
	w.exits(a, program{runs: time.Second, code: 1}, program{runs: time.Second, code: 3}, program{runs: time.Second, code: 1}, program{runs: time.Second})
	w.accept(configuration(newJob("a", every5(), failures(1))))
	w.untilClock("03:07:00")
	j := w.job(a)
	if j.Status != schema.JobScheduled || j.Attempt != 2 || j.Scheduled.Outcome != schema.JobFailed || j.Reason != "run 1 failed: exit status 3" {
		t.Fatalf("got %s, %q, %+v", j.Status, j.Reason, j.Scheduled)
	}
	if j.Attempts[0].Run != 1 || j.Attempts[1].Run != 1 {
		t.Errorf("the attempts are of runs %d and %d", j.Attempts[0].Run, j.Attempts[1].Run)
	}
	w.untilClock("03:12:00")
	if j = w.job(a); j.Attempt != 4 || j.Failures != 1 || j.Scheduled.Outcome != schema.JobSucceeded || j.Reason != "" {
		t.Errorf("got attempt %d, %d failures, %+v, %q\n%s", j.Attempt, j.Failures, j.Scheduled, j.Reason, w.describe())
	}
	w.wantRan(a, "1 at 03:05, 2 at 03:10")
}

func TestOverlap(t *testing.T) {
	a := jobAddr("a")
	for overlap, want := range map[schema.Overlap]struct {
		ran    string
		why    schema.RunSkip
		events string
	}{
		schema.OverlapSkip:    {"1 at 03:05, 2 at 03:15, 3 at 03:25", schema.SkippedOverlap, "is skipped: another run had not ended"},
		schema.OverlapWait:    {"1 at 03:05, 2 at 03:10, 3 at 03:15, 4 at 03:20", "", ""},
		schema.OverlapReplace: {"1 at 03:05, 2 at 03:10, 3 at 03:15, 4 at 03:20, 5 at 03:25", "", "run 1 stopped: replaced by the run that is due at 2026-01-02T03:10:00Z"},
	} {
		t.Run(string(overlap), func(t *testing.T) {
			w := scheduledWorld(t, 6*time.Minute, every5(func(s *schema.Schedule) { s.Overlap = overlap }))
			var events []string
			before := w.doc
			for w.now.Before(clockAt("03:25:30")) {
				p := w.step(2 * time.Second)
				for _, e := range change.Events(before, p, w.now) {
					events = append(events, e.Text)
				}
				before = w.doc
			}
			w.wantRan(a, want.ran)
			if all := strings.Join(events, "\n"); !strings.Contains(all, want.events) {
				t.Errorf("no event has %q:\n%s", want.events, all)
			}
			j := w.job(a)
			if want.why != "" && (j.Scheduled.Skipped == nil || j.Scheduled.Skipped.Why != want.why) {
				t.Errorf("skipped %+v", j.Scheduled.Skipped)
			}
			if j.Failures+j.Preemptions+j.UnknownEnds > 0 {
				t.Errorf("budgets were used\n%s", w.describe())
			}
		})
	}
}

// With overlap = "wait" one run waits at most.
func TestOneRunWaitsAtMost(t *testing.T) {
	a := jobAddr("a")
	w := scheduledWorld(t, 13*time.Minute, every5(func(s *schema.Schedule) { s.Overlap = schema.OverlapWait }))
	w.untilClock("03:19:00")
	w.wantRan(a, "1 at 03:05, 2 at 03:10")
	if s := w.job(a).Scheduled; s.Skipped == nil || s.Skipped.Why != schema.SkippedWaiting || len(s.Queued) != 0 {
		t.Errorf("got %+v", s)
	}
}

// Runs that were due while no controller served.
func TestMissedRuns(t *testing.T) {
	a := jobAddr("a")
	for missed, want := range map[schema.Missed]string{
		schema.MissedSkip: "1 at 03:05, 2 at 04:00",
		schema.MissedOnce: "1 at 03:05, 2 at 03:55, 3 at 04:00",
		schema.MissedAll:  "1 at 03:05, 2 at 03:40, 3 at 03:45, 4 at 03:50, 5 at 03:55, 6 at 04:00",
	} {
		t.Run(string(missed), func(t *testing.T) {
			w := scheduledWorld(t, time.Second, every5(func(s *schema.Schedule) { s.Missed, s.StartingDeadline = missed, schema.Duration(20*time.Minute) }))
			w.untilClock("03:06:00")
			w.save()
			w.now = clockAt("03:58:00")
			w.crash()
			w.untilClock("04:02:00")
			w.wantRan(a, want)
			if w.job(a).Scheduled.Skipped == nil {
				t.Error("nothing says that runs were missed")
			}
		})
	}
}

// A controller that ends after any of its steps, with what it saved until then, neither loses
// the run nor begins it twice: the oracle compares what hosts start.
func TestRunSurvivesACrashAfterEachStep(t *testing.T) {
	a := jobAddr("a")
	for _, saves := range []bool{false, true} {
		for crashAt := range 40 {
			w := scheduledWorld(t, 4*time.Second, every5())
			w.untilClock("03:04:58")
			w.save()
			for n := range 60 {
				if n == crashAt || n == crashAt+7 {
					w.crash()
				}
				if w.step(300 * time.Millisecond); saves {
					w.save()
				}
			}
			w.untilClock("03:06:00")
			w.wantRan(a, "1 at 03:05")
			if j := w.job(a); j.Status != schema.JobScheduled || j.Attempt != 1 {
				t.Fatalf("crash after step %d: %s, attempt %d\n%s", crashAt, j.Status, j.Attempt, w.describe())
			}
		}
	}
}

// The document that has the run is written before its hosts are told of it.
func TestRunIsOnRecordBeforeItBegins(t *testing.T) {
	a := jobAddr("a")
	w := scheduledWorld(t, time.Second, every5())
	w.untilClock("03:04:58")
	found := false
	for range 40 {
		for _, action := range w.step(300 * time.Millisecond).Actions {
			if action.Verb == plan.Assign && action.Assignment.Run != nil {
				found = true
				if !action.AfterSave {
					t.Error("an assignment of a run does not wait for the save")
				}
			}
		}
	}
	if !found {
		t.Fatalf("%s was not assigned\n%s", a, w.describe())
	}
}

func TestClockThatGoesBackRunsNothingTwice(t *testing.T) {
	a := jobAddr("a")
	w := scheduledWorld(t, time.Second, every5())
	w.untilClock("03:06:00")
	w.now = clockAt("02:50:00")
	w.untilClock("03:09:50")
	w.wantRan(a, "1 at 03:05")
	w.untilClock("03:11:00")
	w.wantRan(a, "1 at 03:05, 2 at 03:10")
}

func TestChangedCronLeavesTheRunAlone(t *testing.T) {
	a := jobAddr("a")
	w := scheduledWorld(t, 20*time.Minute, every5())
	w.untilClock("03:06:00")
	w.accept(configuration(newJob("a", every5(func(s *schema.Schedule) { s.Cron = "7 * * * *" }))))
	w.untilClock("03:06:30")
	j := w.job(a)
	if j.Attempt != 1 || j.Status != schema.JobRunning || !j.Scheduled.Due.Equal(clockAt("03:07:00")) {
		t.Errorf("got attempt %d, %s, due %v", j.Attempt, j.Status, j.Scheduled.Due)
	}
	w.untilClock("03:30:00")
	w.wantRan(a, "1 at 03:05")
	if skipped := w.job(a).Scheduled.Skipped; skipped == nil || !skipped.First.Equal(clockAt("03:07:00")) {
		t.Errorf("the run at 3:07 came in a run: skipped %+v", skipped)
	}
}

// Between runs a changed command restarts nothing.
func TestChangedCommandBetweenRuns(t *testing.T) {
	a := jobAddr("a")
	w := scheduledWorld(t, time.Second, every5())
	w.untilClock("03:06:00")
	changed := newJob("a", every5(), withEnv("V", "2"))
	w.accept(configuration(changed))
	p := w.step(time.Second)
	if p.Changes[0].Verb != plan.VerbUpdate {
		t.Errorf("the plan says %s", p.Changes[0].Verb)
	}
	w.untilClock("03:09:00")
	w.wantRan(a, "1 at 03:05")
	w.untilClock("03:11:00")
	w.wantRan(a, "1 at 03:05, 2 at 03:10")
}

// A command that changes during a run restarts the run, which stays the same.
func TestChangedCommandDuringARun(t *testing.T) {
	a := jobAddr("a")
	w := scheduledWorld(t, 100*time.Second, every5())
	w.untilClock("03:06:00")
	w.accept(configuration(newJob("a", every5(), withEnv("V", "2"))))
	w.untilClock("03:09:00")
	w.wantRan(a, "1 at 03:05")
	if j := w.job(a); j.Attempt != 2 || j.Last().Run != 1 || j.Status != schema.JobScheduled {
		t.Errorf("got attempt %d of run %d, %s", j.Attempt, j.Last().Run, j.Status)
	}
}

func TestSuspendedTimesAreNotMissed(t *testing.T) {
	a := jobAddr("a")
	suspended := every5(func(s *schema.Schedule) { s.Suspend, s.Missed = true, schema.MissedAll })
	w := scheduledWorld(t, time.Second, suspended)
	w.untilClock("03:21:00")
	w.wantRan(a, "")
	if p := w.step(time.Second); !p.Wake.IsZero() || len(p.Pending) > 0 {
		t.Errorf("it wakes at %v", p.Wake)
	}
	w.accept(configuration(newJob("a", every5(func(s *schema.Schedule) { s.Missed = schema.MissedAll }))))
	w.untilClock("03:26:00")
	w.wantRan(a, "1 at 03:25")
}

func TestStoppedScheduleBeginsAgainWhenAsked(t *testing.T) {
	a := jobAddr("a")
	for _, at := range []string{"03:04:30", "03:05:20"} { // between runs, and during one
		w := scheduledWorld(t, 30*time.Second, every5())
		w.untilClock(at)
		w.mark(a, func(j *state.Job) { j.Stop, j.StopBy = true, "ann" })
		w.untilClock("03:12:00")
		if j := w.job(a); j.Status != schema.JobStopped || len(w.doc.Slices) > 0 || j.Scheduled.RunGoesOn() {
			t.Fatalf("stopped at %s: %s\n%s", at, j.Status, w.describe())
		}
		before := w.ran(a)
		w.mark(a, func(j *state.Job) { j.Replace = true })
		w.untilClock("03:14:00")
		w.wantRan(a, before)
		w.untilClock("03:16:00")
		if j := w.job(a); !strings.HasSuffix(w.ran(a), "at 03:15") || j.Status != schema.JobScheduled {
			t.Errorf("stopped at %s, then replaced: %s, ran %s\n%s", at, j.Status, w.ran(a), w.describe())
		}
	}
}

func TestScheduleThatIsAddedOrRemoved(t *testing.T) {
	a := jobAddr("a")
	w := scheduledWorld(t, time.Second)
	w.untilClock("03:05:30")
	w.wantJob(a, schema.JobSucceeded, 1, 0, 0)
	w.accept(configuration(newJob("a", every5())))
	w.untilClock("03:06:00")
	w.wantJob(a, schema.JobScheduled, 1, 0, 0)
	w.untilClock("03:11:00")
	w.wantRan(a, "1 at 03:10")
	w.accept(configuration(newJob("a")))
	w.untilClock("03:12:00")
	w.wantJob(a, schema.JobSucceeded, 3, 0, 0)
	if w.job(a).Scheduled != nil {
		t.Error("it is still scheduled")
	}
}

// scheduling_timeout bounds the wait of each run.
func TestRunThatCannotBePlaced(t *testing.T) {
	a := jobAddr("a")
	w := scheduledWorld(t, time.Second, every5(), onTPU("v5litepod-16"), func(j *schema.Job) { j.SchedulingTimeout = schema.Duration(30 * time.Second) })
	w.capacity = 1
	w.untilClock("03:06:00")
	if j := w.job(a); j.Status != schema.JobScheduled || j.Scheduled.Outcome != schema.JobFailed || !strings.Contains(j.Reason, "unschedulable") {
		t.Fatalf("got %s, %+v\n%s", j.Status, j.Scheduled, w.describe())
	}
	w.capacity = 0
	w.untilClock("03:11:00")
	w.wantRan(a, "2 at 03:10")
	w.capacity = 1
	w.untilClock("03:16:30")
	if j := w.job(a); j.Status != schema.JobScheduled || j.Scheduled.Outcome != schema.JobFailed || j.Scheduled.Ended != 3 {
		t.Errorf("the third run: %s, %+v\n%s", j.Status, j.Scheduled, w.describe())
	}
}

// A state that is older than what runs, such as one that was restored, learns of the run from
// its assignment: it goes on, and its time has no second one.
func TestRunIsFoundRunning(t *testing.T) {
	a := jobAddr("a")
	w := scheduledWorld(t, 30*time.Second, every5())
	w.untilClock("03:04:58")
	old := w.doc
	w.untilClock("03:05:20")
	w.wantRan(a, "1 at 03:05")
	w.saved = old
	w.crash()
	w.untilClock("03:05:25")
	if j := w.job(a); j.Status != schema.JobRunning || j.Scheduled.Run != 1 || !j.Last().Resumed || j.Last().Run != 1 {
		t.Errorf("found as %s, attempt %+v, %+v", j.Status, j.Last(), j.Scheduled)
	}
	w.untilClock("03:11:00")
	w.wantRan(a, "1 at 03:05, 2 at 03:10")
	if j := w.job(a); j.Attempt != 2 {
		t.Errorf("%d attempts", j.Attempt)
	}
}

// A preemption is retried within its run, and counts as no failure.
func TestPreemptedRunGoesOn(t *testing.T) {
	a := jobAddr("a")
	w := scheduledWorld(t, 40*time.Second, every5(), onTPU("v5litepod-8"))
	w.untilClock("03:05:30")
	w.preempt(w.sliceOf(a, 0))
	w.untilClock("03:08:00")
	w.wantRan(a, "1 at 03:05")
	if j := w.job(a); j.Attempt < 2 || j.Failures > 0 || j.Scheduled.Outcome != schema.JobSucceeded || j.Last().Run != 1 {
		t.Errorf("got attempt %d, %d failures, %+v\n%s", j.Attempt, j.Failures, j.Scheduled, w.describe())
	}
}

// Nothing of a job between its runs counts against a limit: another job has the only slice.
func TestScheduledJobHoldsNothing(t *testing.T) {
	w := newWorld(t)
	w.accept(limited(configuration(newJob("a", every5()), newJob("b")), 1))
	w.settle(time.Minute)
	w.wantJob(jobAddr("b"), schema.JobRunning, 1, 0, 0)
	w.untilClock("03:05:10")
	if j := w.job(jobAddr("a")); j.Status != schema.JobPending || j.Reason == "" {
		t.Errorf("its run waits for room: %s, %q", j.Status, j.Reason)
	}
}
