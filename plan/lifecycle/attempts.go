package lifecycle

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/cron"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Attempts decides what becomes of attempts: adopted, observed, ended, released.
type Attempts struct {
	*Slices

	Settled []schema.Address // jobs that wait no more, unless waits name them
}

// stopAndReportStopped ends a job's attempt in place and reports whether none runs any more.
func (d *Attempts) stopAndReportStopped(addr schema.Address, why string) bool {
	if d.Next.Jobs[addr].Running() {
		d.stopAttempt(addr, schema.TaskKilled, why)
	}
	return !d.Next.Jobs[addr].Running()
}

// releaseReplacedSlices gives up the slices of a job in the place of which it has others.
func (d *Attempts) releaseReplacedSlices(j *state.Job, by []string) {
	for _, name := range j.Slices {
		if s := d.Next.Slices[name]; s != nil && s.Spec.Owner == j.Spec.Addr && !slices.Contains(by, name) {
			d.terminate(name, state.Termination{Cause: state.CauseReplaced, Text: "it was replaced"})
		}
	}
}

// beginQueued has the next run of a job begin whose run before has ended, and reports
// whether one does.
func (d *Attempts) beginQueued(j *state.Job) bool {
	if j.Status != schema.JobScheduled || len(j.Scheduled.Queued) == 0 || j.Stop {
		return false
	}
	runs := *j.Scheduled
	next := slices.IndexFunc(runs.Queued, func(due time.Time) bool { return !cron.IsTooLate(j.Spec.Schedule, due, d.Now) })
	late := runs.Queued
	if next >= 0 {
		late = runs.Queued[:next]
	}
	if len(late) > 0 {
		runs.Skipped = &state.SkippedRuns{First: late[0], Last: late[len(late)-1], Runs: len(late), Why: schema.SkippedDeadline}
	}
	e := d.Edit(j.Spec.Addr)
	runs.Replace = false
	e.Scheduled = &runs
	if next < 0 {
		runs.Queued = nil
		return false
	}
	runs.ScheduledRun = state.ScheduledRun{Run: runs.Run + 1, DueAt: runs.Queued[next]}
	if runs.Queued = slices.Clone(runs.Queued[next+1:]); len(runs.Queued) == 0 {
		runs.Queued = nil
	}
	e.Status, e.Reason, e.Ready = schema.JobPending, "", false
	e.Failures, e.Preemptions, e.UnknownEnds, e.Streak = 0, 0, 0, 0
	e.RetryAt, e.AdmittedAt = time.Time{}, d.Now
	return true
}

// restoreRun takes over the run of a job that was begun and not recorded.
func restoreRun(j *state.Job, run *state.Run) {
	if run.Run == 0 || run.Spec.Schedule == nil {
		return
	}
	runs := state.ScheduledRuns{Rule: run.Spec.Schedule.Rule()}
	if j.Scheduled != nil {
		runs = *j.Scheduled
	}
	if runs.Run >= run.Run {
		return
	}
	runs.ScheduledRun = run.ScheduledRun
	runs.Ended = min(runs.Ended, run.Run-1)
	runs.Queued = slices.DeleteFunc(slices.Clone(runs.Queued), func(due time.Time) bool { return !due.After(run.DueAt) })
	if runs.Due.IsZero() || !runs.Due.After(run.DueAt) {
		runs.Due = timesOf(run.Spec.Schedule).Next(run.DueAt)
	}
	j.Scheduled = &runs
	if j.Status == schema.JobScheduled {
		j.Status = schema.JobPending
	}
}

// endStoppedRun records that a run ended with its job, which was asked to stop.
func endStoppedRun(j *state.Job, now time.Time) {
	if !j.Scheduled.RunGoesOn() {
		return
	}
	runs := *j.Scheduled
	runs.Outcome, runs.Reason, runs.Ended, runs.EndedAt = schema.JobStopped, j.Reason, runs.Run, now
	j.Scheduled = &runs
}

// timesOf are the times of a schedule, none where it cannot be read: files with such a
// schedule are rejected, and a state with one is of another version.
func timesOf(s *schema.Schedule) cron.Times {
	times, err := cron.Of(s)
	if err != nil {
		return cron.Times{}
	}
	return times
}
