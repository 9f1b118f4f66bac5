package lifecycle

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/cron"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// The runs of a job with a schedule, one Diff at a time: the state has the first time that
// has not been decided about. Once it has come, cron.Decide says which runs begin, and the
// next time is recorded with them, so that no time is decided about twice, whoever leads and
// wherever the clock goes. A run that is to begin waits in a queue until the one before has
// ended; it begins by making the job pending, with budgets of its own. From then on it is
// like any other job, until it has ended and the job is scheduled again.

// followSchedule decides about the runs of a job that are due, and returns the job.
func (d *Jobs) followSchedule(want *schema.Job) *state.Job {
	addr := want.Addr
	j := d.Next.Jobs[addr]
	s := want.Schedule
	if s == nil {
		if j.Scheduled == nil {
			return j
		}
		e := d.Edit(addr)
		e.Scheduled = nil
		if e.Status == schema.JobScheduled { // it runs once from now on
			return d.Renew(want)
		}
		return e
	}
	runs := state.ScheduledRuns{}
	if j.Scheduled != nil {
		runs = *j.Scheduled
	}
	ruled := j.Scheduled != nil && runs.Rule == s.Rule() && (!runs.Due.IsZero() || s.Suspend)
	stopped := j.Stop || j.Status == schema.JobStopped
	switch {
	case stopped && (j.Scheduled == nil || runs.Rule != "" || len(runs.Queued) > 0):
		runs.Rule, runs.Due, runs.Queued, runs.Replace = "", time.Time{}, nil, false
		d.Edit(addr).Scheduled = &runs
	case stopped:
	case !ruled:
		e := d.Edit(addr)
		runs.Rule, runs.Due = s.Rule(), time.Time{}
		if s.Suspend {
			runs.Queued, runs.Replace = nil, false
		} else {
			runs.Due = timesOf(s).Next(d.Now)
		}
		if e.Scheduled == nil && e.Status.Ended() { // what it did before was no run
			e.Status, e.Reason = schema.JobScheduled, ""
		}
		e.Scheduled = &runs
	case !runs.Due.IsZero() && !d.Now.Before(runs.Due):
		busy := !j.Status.Ended()
		decided := cron.Decide(s, timesOf(s), cron.Moment{Now: d.Now, Due: runs.Due, Busy: busy, Queued: runs.Queued})
		runs.Due, runs.Queued, runs.Replace = decided.Due, decided.Queued, runs.Replace && busy || decided.Replace
		if n := len(decided.Skipped); n > 0 {
			runs.Skipped = skippedRuns(decided.Skipped)
		}
		d.Edit(addr).Scheduled = &runs
	}
	d.WakeAt(runs.Due)
	return d.Next.Jobs[addr]
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

// skippedRuns are runs that were skipped at once, as they are recorded.
func skippedRuns(skips []cron.Skip) *state.SkippedRuns {
	last := skips[len(skips)-1]
	all := state.SkippedRuns{First: skips[0].First, Last: last.Last, Why: last.Why}
	for _, skip := range skips {
		if skip.Runs == 0 {
			all.Runs = 0
			return &all
		}
		all.Runs += skip.Runs
	}
	return &all
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

// isReplacedByRun reports whether the run of a job is to end for the next one.
func (d *Jobs) isReplacedByRun(j *state.Job) bool {
	return j.Scheduled != nil && j.Scheduled.Replace && len(j.Scheduled.Queued) > 0
}

// replaceRun ends the run of a job, without a failure, and begins the next one on the same slices.
func (d *Jobs) replaceRun(addr schema.Address) {
	runs := d.Next.Jobs[addr].Scheduled
	why := "replaced by the run that is due at " + runs.Queued[0].UTC().Format(time.RFC3339)
	if !d.stopAndReportStopped(addr, why) {
		return
	}
	j := d.Next.Jobs[addr]
	if j.Scheduled.Run != runs.Run || !j.Scheduled.RunGoesOn() {
		return // it had ended by itself, and the next one has begun
	}
	e := d.Edit(addr)
	e.Reason = why
	endStoppedRun(e, d.Now)
	e.Status, e.RetryAt = schema.JobScheduled, time.Time{}
	d.beginQueued(e)
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
