package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

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
		about[jobs[i].Addr], about[unitOf(&jobs[i])] = true, true
	}
	for _, p := range Check(&beside) {
		if about[p.Addr] {
			why = append(why, p.Detail)
		}
	}
	return why
}

// spaces refuses what is larger than its namespace, or user of one, may ever hold.
func (c *checker) spaces(desired *schema.Desired) {
	s := &accounts{declared: map[string]*schema.Namespace{}, spaces: map[string]*account{}}
	for i := range desired.Namespaces {
		n := &desired.Namespaces[i]
		s.declared[n.Addr.Scoped()] = n
	}
	if len(s.declared) == 0 {
		return
	}
	type part struct {
		unit schema.Address
		of   *account
	}
	needs := map[part]load{}
	var order []part
	for i := range desired.Jobs {
		job := &desired.Jobs[i]
		if s.declared[job.Namespace] == nil {
			continue
		}
		for _, a := range s.of(job.Namespace, job.User) {
			p := part{unit: unitOf(job), of: a}
			if _, seen := needs[p]; !seen {
				order = append(order, p)
			}
			needs[p] = needs[p].plus(c.sizer.eachLoad(job), job.Resources.Slices)
		}
	}
	for _, p := range order {
		if need := needs[p]; need.exceeds(load{}, p.of.max) {
			c.problems = append(c.problems, Problem{
				Addr: p.unit, Summary: "Larger than its namespace",
				Detail: fmt.Sprintf("%s needs all of its slices at once, but %s. Make it smaller or raise the limit.", p.unit, p.of.name+": "+spaceShortage(need, load{}, p.of.max)),
			})
		}
	}
}

// isOverdueStart reports whether a job, or another of its group, has waited for its
// first start for longer than it is to.
func (d *differ) isOverdueStart(want *schema.Job, j *state.Job) bool {
	if d.overdue(want, j) {
		return true
	}
	group := want.Addr.GroupAddress()
	if group.IsZero() || j.Attempt > 0 || j.Status.Ended() {
		return false
	}
	// Members ask one after another: what was found for the first is found again.
	late, asked := d.late[group]
	if asked && (late == nil || d.overdue(late, d.next.Jobs[late.Addr])) {
		return late != nil
	}
	family := d.family(group)
	late = nil
	if i := slices.IndexFunc(family, func(other *schema.Job) bool { return d.overdue(other, d.next.Jobs[other.Addr]) }); i >= 0 {
		late = family[i]
	}
	if d.late == nil {
		d.late = map[schema.Address]*schema.Job{}
	}
	d.late[group] = late
	return late != nil
}

// overdue is isOverdueStart of a job alone.
func (d *differ) overdue(want *schema.Job, j *state.Job) bool {
	if want.SchedulingTimeout == 0 || j == nil || j.Attempt > 0 || j.AdmittedAt.IsZero() || j.Status.Ended() && !isUnschedulable(j) {
		return false
	}
	deadline := j.AdmittedAt.Add(time.Duration(want.SchedulingTimeout))
	d.wakeAt(deadline)
	return !d.now.Before(deadline)
}

// isUnschedulable reports whether a job was given up before its first attempt:
// nothing else has a job fail without one.
func isUnschedulable(j *state.Job) bool { return j.Status == schema.JobFailed && j.Attempt == 0 }

// unschedulable gives a job up that could not be started in time, with its group.
func (d *differ) unschedulable(want *schema.Job) {
	j := d.next.Jobs[want.Addr]
	if !j.Status.Ended() {
		waited := time.Duration(want.SchedulingTimeout)
		if waited == 0 {
			waited = d.now.Sub(j.AdmittedAt).Truncate(time.Second)
		}
		e := d.edit(want.Addr)
		e.Status, e.Ready = schema.JobFailed, false
		e.Reason = fmt.Sprintf("unschedulable: waited %s; last: %s", waited, cmp.Or(j.Reason, "its turn had not come"))
	}
	d.released(want.Addr, decided(state.CauseEnded))
}
