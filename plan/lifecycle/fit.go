package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// NeverFits says of jobs that are about to be launched beside what is declared,
// together, why some could never be placed, whatever else ends: nothing if they
// could. Those of one group are placed together.
func NeverFits(desired *schema.Desired, jobs []schema.Job) []string {
	beside := *desired
	beside.Jobs = jobs
	var why []string
	about := make(map[schema.Address]bool, len(jobs))
	for i := range jobs {
		about[jobs[i].Addr], about[capacity.UnitOf(&jobs[i])] = true, true
	}
	for _, p := range capacity.Check(&beside) {
		if about[p.Addr] {
			why = append(why, p.Detail)
		}
	}
	return why
}

// isOverdueStart reports whether a job, or another of its group, has waited for its
// first start for longer than it is to.
func (d *Jobs) isOverdueStart(want *schema.Job, j *state.Job) bool {
	if d.overdue(want, j) {
		return true
	}
	group := want.Addr.GroupAddress()
	if group.IsZero() || j.Attempt > 0 || j.Status.Ended() {
		return false
	}
	// Members ask one after another: what was found for the first is found again.
	late, asked := d.late[group]
	if asked && (late == nil || d.overdue(late, d.Next.Jobs[late.Addr])) {
		return late != nil
	}
	family := d.Family(group)
	late = nil
	if i := slices.IndexFunc(family, func(other *schema.Job) bool { return d.overdue(other, d.Next.Jobs[other.Addr]) }); i >= 0 {
		late = family[i]
	}
	if d.late == nil {
		d.late = map[schema.Address]*schema.Job{}
	}
	d.late[group] = late
	return late != nil
}

// overdue is isOverdueStart of a job alone.
func (d *Jobs) overdue(want *schema.Job, j *state.Job) bool {
	if want.SchedulingTimeout == 0 || j == nil || hasStarted(j) || j.AdmittedAt.IsZero() || j.Status.Ended() && !isUnschedulable(j) {
		return false
	}
	deadline := j.AdmittedAt.Add(time.Duration(want.SchedulingTimeout))
	d.WakeAt(deadline)
	return !d.Now.Before(deadline)
}

// hasStarted reports whether a job has had an attempt; of one with a schedule, in its
// present run.
func hasStarted(j *state.Job) bool {
	last := j.Last()
	return j.Attempt > 0 && (j.Scheduled == nil || last != nil && last.Run == j.Scheduled.Run)
}

// isUnschedulable reports whether a job was given up before its first attempt:
// nothing else has a job fail without one.
func isUnschedulable(j *state.Job) bool { return j.Status == schema.JobFailed && j.Attempt == 0 }

// unschedulable gives a job up that could not be started in time, with its group.
func (d *Jobs) unschedulable(want *schema.Job) {
	j := d.Next.Jobs[want.Addr]
	if !j.Status.Ended() {
		waited := time.Duration(want.SchedulingTimeout)
		if waited == 0 {
			waited = d.Now.Sub(j.AdmittedAt).Truncate(time.Second)
		}
		e := d.Edit(want.Addr)
		e.Status, e.Ready = schema.JobFailed, false
		e.Reason = fmt.Sprintf("unschedulable: waited %s; last: %s", waited, cmp.Or(j.Reason, "its turn had not come"))
		plan.EndRun(e, d.Now)
	}
	d.Released(want.Addr, change.Decided(state.CauseEnded))
}
