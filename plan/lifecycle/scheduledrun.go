package lifecycle

import (
	"time"

	"github.com/fray-ml/fray/cron"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// The runs of a job with a schedule, one Diff at a time: the state has the first time that
// has not been decided about. Once it has come, cron.Decide says which runs begin, and the
// next time is recorded with them, so that no time is decided about twice, whichever
// controller leads and wherever the clock goes. A run that is to begin waits in a queue until the one before has
// ended; it begins by making the job pending, with budgets of its own. From then on it is
// like any other job, until it has ended and the job is scheduled again.

// runs decides about the runs of jobs.
type runs struct{ *Jobs }

// follow decides about the runs of a job that are due, and returns the job.
func (d runs) follow(want *schema.Job) *state.Job {
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
	at := state.ScheduledRuns{}
	if j.Scheduled != nil {
		at = *j.Scheduled
	}
	ruled := j.Scheduled != nil && at.Rule == s.Rule()
	stopped := j.Stop || j.Status == schema.JobStopped
	switch {
	case stopped && (j.Scheduled == nil || at.Rule != "" || len(at.Queued) > 0):
		at.Rule, at.Due, at.Queued, at.Replace = "", time.Time{}, nil, false
		d.Edit(addr).Scheduled = &at
	case stopped:
	case !ruled:
		e := d.Edit(addr)
		at.Rule, at.Due = s.Rule(), time.Time{}
		if s.Suspend {
			at.Queued, at.Replace = nil, false
		} else {
			at.Due = timesOf(s).Next(d.Now)
		}
		if e.Scheduled == nil && e.Status.Ended() { // what it did before was no run
			e.Status, e.Reason = schema.JobScheduled, ""
		}
		e.Scheduled = &at
	case !at.Due.IsZero() && !d.Now.Before(at.Due):
		busy := !j.Status.Ended()
		decided := cron.Decide(s, timesOf(s), cron.Moment{Now: d.Now, Due: at.Due, Busy: busy, Queued: at.Queued})
		at.Due, at.Queued, at.Replace = decided.Due, decided.Queued, at.Replace && busy || decided.Replace
		if n := len(decided.Skipped); n > 0 {
			at.Skipped = skippedRuns(decided.Skipped)
		}
		d.Edit(addr).Scheduled = &at
	}
	d.WakeAt(at.Due)
	return d.Next.Jobs[addr]
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

// isReplacedByRun reports whether the run of a job is to end for the next one.
func isReplacedByRun(j *state.Job) bool {
	return j.Scheduled != nil && j.Scheduled.Replace && len(j.Scheduled.Queued) > 0
}

// replace ends the run of a job, without a failure, and begins the next one on the same slices.
func (d runs) replace(addr schema.Address) {
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
