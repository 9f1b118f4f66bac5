package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// adopt takes over an attempt that was assigned but not recorded: a step that
// assigned it died before saving the state. The assignment carries the budgets
// spent, so that nothing is forgiven or counted twice. The job is returned as it
// now stands.
func (d *differ) adopt(j *state.Job) *state.Job {
	addr := j.Spec.Addr
	a := d.unrecorded(addr, j)
	if a == nil {
		return j
	}
	run := a.Run
	d.drift(addr, "", fmt.Sprintf("attempt %d of %s was started but not recorded", run.Attempt, addr), "it is taken over")
	e := d.edit(addr)
	if last := e.Last(); last != nil && last.Outcome == "" {
		last.Outcome, last.Reason = cmp.Or(last.Cause, schema.TaskKilled), cmp.Or(last.Reason, "its end was not recorded")
		last.EndedAt = d.now
	}
	attempt := AssignedAttempt(&a.Assignment)
	attempt.StartedAt, attempt.Why = d.now, "adopted: it was assigned by a step that did not live to record it"
	appendAttempt(e, attempt)
	e.ID = run.JobID
	e.Failures, e.Preemptions, e.UnknownEnds = run.Failures, run.Preemptions, run.UnknownEnds
	if slices.ContainsFunc(attempt.Slices, func(name string) bool { return slices.Contains(e.Staged, name) }) {
		d.outdo(e, attempt.Slices)
		e.Staged = nil
	}
	e.Slices = slices.Clone(attempt.Slices)
	e.Ready, e.RetryAt = false, time.Time{}
	if e.Digest != run.Digest {
		last := e.Spec.Lifecycle
		last.Trigger, last.TriggeredBy = run.Spec.Lifecycle.Trigger, run.Spec.Lifecycle.TriggeredBy
		e.Spec, e.Digest = assignedSpec(run, addr)
		*e = *underLifecycle(e, last)
	}
	for _, name := range attempt.Slices {
		d.holders[name] = addr
		if st, ok := d.slices[name]; ok {
			d.claim(st, addr)
		}
	}
	return e
}

// unrecorded finds the assignment of a job's attempt that is newer than those
// in the state, nil if there is none. A job of the same address that was
// deleted before this one was declared is somebody else.
func (d *differ) unrecorded(addr schema.Address, j *state.Job) *Assigned {
	if j.Spec.Resources.Reservation == "" && len(j.Slices) > 0 { // it can only be there
		for _, names := range [2][]string{j.Slices, j.Staged} {
			for _, name := range names {
				run := d.obs.Assignments[name].Run
				if run != nil && run.Attempt > j.Attempt && run.JobID == j.ID {
					a := d.obs.Assignments[name]
					return &a
				}
			}
		}
		return nil
	}
	if _, recorded := d.doc.Jobs[addr]; recorded {
		if a := d.newestRuns().byID[j.ID]; a != nil && a.Run.Attempt > j.Attempt {
			return a
		}
		return nil
	}
	a := d.newestAt(addr)
	if a == nil {
		return nil
	}
	for _, p := range a.Run.Peers { // the state was lost; so may the slices be
		if _, listed := d.slices[p.Slice]; listed {
			return a
		}
	}
	return nil
}

func appendAttempt(j *state.Job, a state.Attempt) {
	j.Attempt = a.Number
	j.Attempts = append(j.Attempts, a)
	if extra := len(j.Attempts) - state.MaxAttempts; extra > 0 {
		j.Attempts = slices.Clone(j.Attempts[extra:])
	}
}

// observe copies what the hosts report about the running attempt into the
// state. The generation tells apart attempts of the same number: a job that was
// deleted and declared again counts from 1. The address does not count: the job
// may have been moved since.
func (d *differ) observe(j *state.Job) *state.Job {
	addr, last := j.Spec.Addr, j.Last()
	for i := range last.Tasks {
		t := &last.Tasks[i]
		h := d.host(t.Slice, t.Host)
		if h == nil || h.Task == nil {
			continue
		}
		r := h.Task
		if r.Attempt != last.Number || r.Generation != last.Generation ||
			t.State == r.State && t.Reason == r.Reason && t.Started == r.Started && len(t.Ports) == len(r.Ports) {
			continue
		}
		j = d.edit(addr)
		e := &j.Last().Tasks[i]
		e.State, e.Reason, e.ExitCode, e.Ports, e.Started, e.Tail = r.State, r.Reason, r.ExitCode, r.Ports, r.Started, r.Tail
		e.BadHost, e.EndedAt = r.BadHost, r.EndedAt
	}
	return j
}

func (d *differ) host(slice string, n int) *Host {
	hosts := d.obs.Hosts[slice]
	if n < len(hosts) && hosts[n].Host == n {
		return &hosts[n]
	}
	for i := range hosts {
		if hosts[i].Host == n {
			return &hosts[i]
		}
	}
	return nil
}

// watchAttempt looks at a running attempt and ends it where it must.
func (d *differ) watchAttempt(j *state.Job) {
	addr, last := j.Spec.Addr, j.Last()
	if last.StopGeneration != 0 {
		d.end(addr, last.Cause, last.Reason)
		return
	}
	if outcome, why := d.loss(j); outcome != "" {
		d.drift(addr, "", why, "its tasks will be started again")
		d.end(addr, outcome, why)
		return
	}
	outcome, why := verdict(last)
	switch outcome {
	case schema.TaskSucceeded:
		d.finish(addr, schema.TaskSucceeded, "")
		return
	case schema.TaskRunning, schema.TaskPending:
		if d.overruled(last) {
			d.drift(addr, "", fmt.Sprintf("attempt %d was told to stop by a step that did not live to record it", last.Number), "it will be ended")
			d.end(addr, schema.TaskKilled, "its end was not recorded")
			return
		}
		d.reassign(j)
		d.note(j, outcome == schema.TaskRunning)
		return
	case schema.TaskAssigned, schema.TaskBuilding, schema.TaskFailed, schema.TaskKilled,
		schema.TaskWorkerFailed, schema.TaskPreempted, schema.TaskUnschedulable, schema.TaskExitUnknown:
	}
	d.drift(addr, "", fmt.Sprintf("attempt %d of %s ended: %s", last.Number, addr, why), afterwards(j, outcome))
	d.end(addr, outcome, why)
}

// loss reports whether the attempt lost a slice or a host, as the outcome to
// record and the reason; "" if not. One silent moment is no loss. Hosts that
// can be started again in place are.
func (d *differ) loss(j *state.Job) (schema.TaskState, string) {
	for _, name := range j.Last().Slices {
		st, listed := d.slices[name]
		switch {
		case !listed && d.known(d.specHeld(name, j)):
			return d.goneOutcome(name), fmt.Sprintf("slice %s is gone", name)
		case !listed: // nothing may be concluded
		case st.Phase == schema.SliceDead || st.Phase == schema.SliceDeleting:
			return d.goneOutcome(name), strings.TrimSuffix(fmt.Sprintf("slice %s is %s: %s", name, st.Phase, st.Reason), ": ")
		default:
			if why := d.lostHost(st); why != "" {
				d.remove(st, why)
				return schema.TaskWorkerFailed, why
			}
			if len(st.Down) > 0 {
				d.mend(st)
			}
			d.freshenOf(j, st)
		}
	}
	return "", ""
}

// freshenOf changes in place what can be of a slice that a running job has.
func (d *differ) freshenOf(j *state.Job, st *schema.SliceStatus) {
	if st.Spec.On != "" || st.Spec.Owner != j.Spec.Addr || st.Spec.Provider != schema.ProviderGCP {
		return
	}
	spec := st.Spec
	spec.Cloud.Live = withLabels(j.Spec.Resources.Cloud.Live, j.Spec.Labels)
	d.freshen(st, &spec)
}

// goneOutcome is what the end of a slice means for what ran there.
func (d *differ) goneOutcome(name string) schema.TaskState {
	if s := d.next.Slices[name]; s != nil && s.Spec.Preemptible {
		return schema.TaskPreempted
	}
	return schema.TaskWorkerFailed
}

// overruled reports whether a slice of the attempt was told something newer.
func (d *differ) overruled(a *state.Attempt) bool {
	for _, name := range a.Slices {
		if d.obs.Assignments[name].Generation > a.Generation {
			return true
		}
	}
	return false
}

// note records that an attempt came up, or why it has not yet.
func (d *differ) note(j *state.Job, running bool) {
	addr, last := j.Spec.Addr, j.Last()
	first, waiting := reason{}, 0
	for i := range last.Tasks {
		t := &last.Tasks[i]
		h := d.host(t.Slice, t.Host)
		why := ""
		switch {
		case t.State == schema.TaskSucceeded:
		case t.State != schema.TaskRunning:
			why = fmt.Sprintf("task %d is %s", i, describe(t))
		case h != nil && h.Task != nil && !h.Task.Ready():
			why = fmt.Sprintf("task %d is up but not healthy yet", i)
		}
		if why != "" {
			if waiting == 0 {
				first = underway(why)
			}
			waiting++
		}
	}
	if running && j.Status != schema.JobRunning {
		d.edit(addr).Status = schema.JobRunning
	}
	if ready := waiting == 0; ready != j.Ready {
		e := d.edit(addr)
		e.Ready = ready
		if ready && e.Last().ReadyAt.IsZero() {
			e.Last().ReadyAt = d.now
		}
	}
	if waiting == 0 && j.Reason != "" {
		d.content = append(d.content, addr)
	}
	if waiting > 0 {
		first.text += more(waiting - 1)
		d.wait(addr, first)
	}
}

func describe(t *state.Task) string {
	if t.Reason == "" {
		return string(t.State)
	}
	return string(t.State) + ": " + t.Reason
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n)
}

// end stops all tasks of the running attempt and, once every host has confirmed
// that, records the outcome. cause is the outcome unless hosts turn out lost.
func (d *differ) end(addr schema.Address, cause schema.TaskState, why string) {
	last := d.next.Jobs[addr].Last()
	if last.StopGeneration == 0 {
		e := d.edit(addr)
		e.Ready = false
		last = e.Last()
		last.StopGeneration = d.nextGeneration(last.Slices)
		last.Cause, last.Reason = cause, why
	}
	confirmed, lost := true, schema.TaskState("")
	for _, name := range last.Slices {
		ended, gone := d.endedOn(name, addr, last)
		confirmed = confirmed && ended
		if gone {
			lost = cmp.Or(lost, d.goneOutcome(name))
		}
	}
	if !confirmed {
		d.wait(addr, underway(fmt.Sprintf("attempt %d is being stopped: %s", last.Number, last.Reason)))
		return
	}
	cause, why = last.Cause, last.Reason
	if outcome, _ := verdict(last); outcome == schema.TaskSucceeded && !d.next.Jobs[addr].YieldsTo.IsZero() {
		cause, why = schema.TaskSucceeded, "" // it was done before it was told to yield
	}
	if cause == schema.TaskFailed || cause == schema.TaskUnschedulable {
		switch infrastructure := cmp.Or(lost, taskOutcome(last)); infrastructure {
		case "":
		case schema.TaskExitUnknown:
			cause, why = infrastructure, why+" (and how another of its tasks ended is not known)"
		default:
			cause, why = infrastructure, why+" (and part of what it ran on was lost)"
		}
	}
	d.finish(addr, cause, why)
}

// endedOn reports whether an attempt has ended on all hosts of one of its
// slices, and sees to it; gone says that the slice itself is no more.
func (d *differ) endedOn(name string, addr schema.Address, a *state.Attempt) (ended, gone bool) {
	st, listed := d.slices[name]
	if !listed {
		gone = d.known(d.specHeld(name, d.next.Jobs[addr]))
		return gone, gone
	}
	d.recordOf(st)
	if st.Phase == schema.SliceDead {
		d.doom(name, "it is dead: "+st.Reason)
	} else if why := d.lostHost(st); why != "" {
		d.doom(name, why)
	}
	if d.next.Slices[name].Doomed != "" || st.Phase == schema.SliceDeleting {
		d.remove(st, "")
		// Machines that were taken away, and are silent, run nothing; how long
		// it takes to clear away what is left of them is another matter.
		taken := d.next.Slices[name].Taken && d.isSilent(st)
		return taken, taken
	}
	cur := d.obs.Assignments[name]
	if cur.Generation < a.StopGeneration {
		d.halt(addr, name, a.StopGeneration)
		return false, false
	}
	for n := range st.Spec.Hosts {
		if h := d.host(name, n); h == nil || h.Generation < a.StopGeneration {
			if len(st.Down) > 0 { // who does not run cannot confirm
				d.mend(st)
			}
			return false, false
		}
	}
	return true, false
}

// finish gives the running attempt its outcome and decides what follows.
func (d *differ) finish(addr schema.Address, outcome schema.TaskState, why string) {
	e := d.edit(addr)
	last := e.Last()
	last.Outcome, last.Reason, last.EndedAt = outcome, why, endOf(last, d.now)
	for i := range last.Tasks {
		if t := &last.Tasks[i]; t.BadHost {
			d.doom(t.Slice, fmt.Sprintf("host %d is bad: %s", t.Host, t.Reason))
		}
	}
	settle(e, d.now)
	if e.Status.Ended() {
		d.released(addr, jobEnded)
	}
}

// endOf is when the last task of an attempt ended, as its host recorded it: long
// ago, perhaps, where no step was made meanwhile. It is now where a task left no
// end, and within the attempt where a host's clock is wrong.
func endOf(a *state.Attempt, now time.Time) time.Time {
	var last time.Time
	for i := range a.Tasks {
		end := a.Tasks[i].EndedAt
		if end.IsZero() {
			return now
		}
		last = later(last, end)
	}
	switch {
	case last.IsZero() || last.After(now):
		return now
	case last.Before(a.StartedAt):
		return a.StartedAt
	}
	return last
}

// nextGeneration is above every generation that the slices have seen.
func (d *differ) nextGeneration(names []string) int64 {
	var highest int64
	for _, name := range names {
		highest = max(highest, d.obs.Assignments[name].Generation)
		for _, h := range d.obs.Hosts[name] {
			highest = max(highest, h.Generation)
		}
	}
	return highest + 1
}
