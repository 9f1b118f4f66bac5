package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// adopt takes over an attempt that was assigned but not recorded: the state is
// saved after attempts are assigned, by a controller that may die in between, and
// readers see an older state than mailboxes. The assignment carries what would have
// been recorded, with the budgets spent, so that nothing is forgiven or counted
// twice. The job is returned as it now stands.
func (d *Attempts) adopt(j *state.Job) *state.Job {
	addr := j.Spec.Addr
	a := d.unrecorded(addr, j)
	if a == nil {
		return j
	}
	run := a.Run
	if _, recorded := d.Doc.Jobs[addr]; !recorded { // else the state is merely older than its last write would be
		d.Drift(plan.Drift{Kind: plan.DriftUnrecorded, Addr: addr, Found: fmt.Sprintf("attempt %d of %s runs, and the state does not have the job", run.Attempt, addr), Then: "it goes on"})
	}
	e := d.Edit(addr)
	EndBefore(e, run, d.Now)
	attempt := snapshot.AssignedAttempt(&a.Assignment)
	attempt.Resumed, attempt.Why = true, cmp.Or(attempt.Why, StartedBefore)
	if attempt.StartedAt.IsZero() {
		attempt.StartedAt = d.Now
	}
	AppendAttempt(e, attempt)
	e.ID = run.JobID
	e.Failures, e.Preemptions, e.UnknownEnds = run.Failures, run.Preemptions, run.UnknownEnds
	restoreRun(e, run)
	if slices.ContainsFunc(attempt.Slices, func(name string) bool { return slices.Contains(e.Staged, name) }) {
		d.releaseReplacedSlices(e, attempt.Slices)
		e.Staged = nil
	}
	e.Slices = slices.Clone(attempt.Slices)
	e.Ready, e.RetryAt = false, time.Time{}
	if e.Digest != run.Digest {
		last := e.Spec.Lifecycle
		last.Trigger, last.TriggeredBy = run.Spec.Lifecycle.Trigger, run.Spec.Lifecycle.TriggeredBy
		e.Spec, e.Digest = snapshot.AssignedSpec(run, addr)
		e.Causes = nil // what they changed is assigned
		*e = *change.UnderLifecycle(e, last)
	}
	for _, name := range attempt.Slices {
		d.Holders[name] = addr
		if s := d.Next.Slices[name]; s != nil && s.Spec.Owner.Kind != schema.KindReservation { // it was warm when it was taken
			spec := s.Spec
			spec.Owner = addr
			d.TakeUp(&spec)
		}
		if st, ok := d.Listed[name]; ok {
			d.Claim(st, addr)
		}
	}
	d.NoteFound(e)
	return e
}

// StartedBefore is why an attempt began of which the assignment, by an older fray,
// does not have that.
const StartedBefore = "started before the controller restarted"

// EndBefore records how the last attempt of a job ended before another one began.
func EndBefore(j *state.Job, run *state.Run, now time.Time) {
	last := j.Last()
	if last == nil || last.Outcome != "" {
		return
	}
	last.Outcome, last.EndedAt = cmp.Or(last.Cause, schema.TaskKilled), now
	if b := run.Before; b != nil && b.Attempt == last.Number {
		last.Outcome, last.Reason, last.EndedAt = b.Outcome, b.Reason, b.EndedAt
	}
	endUnheard(j, last)
}

// endUnheard gives those tasks of an attempt an end that had no time to report one:
// they went with what they ran on, or were stopped.
func endUnheard(j *state.Job, a *state.Attempt) {
	for i := range a.Tasks {
		t := &a.Tasks[i]
		if t.State.Ended() {
			continue
		}
		t.State, t.Reason = schema.TaskKilled, StopText(j, a)
		if a.Outcome == schema.TaskPreempted || a.Outcome == schema.TaskWorkerFailed {
			t.State = a.Outcome
		}
	}
}

// unrecorded finds the assignment of a job's attempt that is newer than those
// in the state, nil if there is none. A job of the same address that was
// deleted before this one was declared is another job.
func (d *Attempts) unrecorded(addr schema.Address, j *state.Job) *plan.Assigned {
	if j.Spec.Resources.Reservation == "" && len(j.Slices) > 0 {
		a, current := d.newestOnOwn(j)
		if a != nil || current {
			return a
		}
		// It may be elsewhere: a slice that was kept warm is taken within a step, of
		// which the state may have been lost.
	}
	if _, recorded := d.Doc.Jobs[addr]; recorded {
		if a := d.NewestRuns().Of(j.ID); a != nil && a.Run.Attempt > j.Attempt {
			return a
		}
		return nil
	}
	a := d.NewestAt(addr)
	if a == nil {
		return nil
	}
	for _, p := range a.Run.Peers { // the state was lost; so may the slices be
		if _, listed := d.Listed[p.Slice]; listed {
			return a
		}
	}
	return nil
}

// newestOnOwn finds a newer attempt among the assignments of a job's recorded
// slices. Current says that the recorded attempt is still assigned there: then no
// newer one was begun elsewhere.
func (d *Attempts) newestOnOwn(j *state.Job) (newest *plan.Assigned, current bool) {
	last := j.Last()
	for _, names := range [2][]string{j.Slices, j.Staged} {
		for _, name := range names {
			a := d.Obs.Assignments[name]
			if a.Run == nil || a.Run.JobID != j.ID {
				continue
			}
			if a.Run.Attempt > j.Attempt {
				found := a // or each of them would be allocated
				return &found, false
			}
			current = current || last != nil && last.Outcome == "" && a.Run.Attempt == last.Number
		}
	}
	return nil, current
}

// AppendAttempt records an attempt as the newest and forgets the oldest beyond the limit.
func AppendAttempt(j *state.Job, a state.Attempt) {
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
func (d *Attempts) observe(j *state.Job) *state.Job {
	addr, last := j.Spec.Addr, j.Last()
	for i := range last.Tasks {
		t, r := &last.Tasks[i], d.reportOf(j, i)
		if r == nil {
			continue
		}
		is, why := r.State, r.Reason
		if r.State == schema.TaskFailed && len(last.Tasks) > 1 {
			is, why = d.peerEnd(j, i, r)
		}
		if t.State == is && t.Reason == why && t.Started == r.Started && len(t.Ports) == len(r.Ports) && t.Hook == r.Hook {
			continue
		}
		j = d.Edit(addr)
		e := &j.Last().Tasks[i]
		e.State, e.Reason, e.ExitCode, e.Ports, e.Started, e.Tail = is, why, r.ExitCode, r.Ports, r.Started, r.Tail
		e.BadHost, e.EndedAt, e.Termination, e.Hook = r.BadHost, r.EndedAt, r.Termination, r.Hook
	}
	return j
}

// reportOf is what a task's host reports about it, nil if nothing of this attempt.
func (d *Attempts) reportOf(j *state.Job, task int) *state.TaskReport {
	a := j.Last()
	t := &a.Tasks[task]
	h := d.Host(t.Slice, t.Host)
	if h == nil || h.Task == nil || h.Task.Attempt != a.Number || h.Task.Generation != a.Generation {
		return nil
	}
	if told, assigned := d.Obs.Assignments[t.Slice]; assigned && isOther(&told, j, a) {
		return nil
	}
	return h.Task
}

// peerEnd is the end of a task that failed. Programs fail when their peers are gone:
// only the task that ended first, by the hosts' clocks, has failed by itself. Others
// went with it, as those did that were still running and were stopped.
func (d *Attempts) peerEnd(j *state.Job, task int, r *state.TaskReport) (schema.TaskState, string) {
	last := j.Last()
	first, at := task, r.EndedAt
	for i := range last.Tasks {
		other := d.reportOf(j, i)
		if i == task || other == nil || other.EndedAt.IsZero() || !endsAttempt(other.State) {
			continue
		}
		if other.EndedAt.Before(at) {
			first, at = i, other.EndedAt
		}
	}
	if first == task {
		return r.State, r.Reason
	}
	return schema.TaskKilled, fmt.Sprintf("ended after %s did: %s", hostName(j, last, first), r.Reason)
}

// endsAttempt reports whether a task that ended so by itself ends its attempt.
func endsAttempt(s schema.TaskState) bool { return plan.Severity(s) > plan.Severity(schema.TaskKilled) }

// hostName is what people call the host of a task: by its number on the job's only
// slice, or with the slice.
func hostName(j *state.Job, a *state.Attempt, task int) string {
	t := &a.Tasks[task]
	switch {
	case len(a.Tasks) == 1:
		return "the task of " + j.Spec.Addr.String()
	case len(a.Slices) == 1:
		return fmt.Sprintf("host %d of %s", t.Host, j.Spec.Addr)
	}
	return fmt.Sprintf("host %d of slice %s of %s", t.Host, t.Slice, j.Spec.Addr)
}

// StopText is why what still runs of an attempt is stopped.
func StopText(j *state.Job, a *state.Attempt) string {
	switch {
	case a.EndedBy != nil && *a.EndedBy < len(a.Tasks):
		return fmt.Sprintf("stopped because %s %s", hostName(j, a, *a.EndedBy), endWords(a.Tasks[*a.EndedBy].State))
	case j.Stop:
		return stoppedText(j)
	}
	return change.WithCause("stopped", a.Reason)
}

// stoppedText is why a job that was asked to end did.
func stoppedText(j *state.Job) string {
	if j.StopBy != "" {
		return "stopped by " + j.StopBy
	}
	return change.DecisionText(state.CauseStopped)
}

// endWords says how a task ended, after its host's name.
func endWords(s schema.TaskState) string {
	switch s {
	case schema.TaskPreempted:
		return "was preempted"
	case schema.TaskWorkerFailed:
		return "was lost"
	case schema.TaskUnschedulable:
		return "could not start its task"
	case schema.TaskKilled:
		return "was stopped"
	case schema.TaskExitUnknown:
		return "ended, and how is not known"
	case schema.TaskFailed, schema.TaskSucceeded, schema.TaskPending, schema.TaskAssigned, schema.TaskBuilding, schema.TaskRunning:
	}
	return "failed"
}

// watchAttempt looks at a running attempt and ends it where it must.
func (d *Attempts) watchAttempt(j *state.Job) {
	addr, last := j.Spec.Addr, j.Last()
	if last.StopGeneration != 0 {
		d.stopAttempt(addr, last.Cause, last.Reason)
		return
	}
	if outcome, why := d.loss(j); outcome != "" {
		d.Drift(plan.Drift{Kind: plan.LossKind(outcome == schema.TaskPreempted), Addr: addr, Found: why, Then: "its tasks will be started again"})
		d.stopAttempt(addr, outcome, why)
		return
	}
	outcome, by := plan.AttemptOutcome(last)
	switch outcome {
	case schema.TaskSucceeded:
		d.recordOutcome(addr, schema.TaskSucceeded, "")
		return
	case schema.TaskRunning, schema.TaskPending:
		if told, is := d.overruling(j, last); is {
			d.overrule(j, last, &told)
			return
		}
		d.Reassign(j)
		d.noteReadiness(j, outcome == schema.TaskRunning)
		return
	case schema.TaskAssigned, schema.TaskBuilding, schema.TaskFailed, schema.TaskKilled,
		schema.TaskWorkerFailed, schema.TaskPreempted, schema.TaskUnschedulable, schema.TaskExitUnknown:
	}
	why := plan.TaskReason(last, by)
	d.Drift(plan.Drift{Kind: plan.DriftAttemptEnded, Addr: addr, Found: fmt.Sprintf("attempt %d of %s ended: %s", last.Number, addr, why), Then: plan.Afterwards(j, outcome)})
	first := by // of its own: what most looks do not need is not allocated for them
	d.Edit(addr).Last().EndedBy = &first
	d.stopAttempt(addr, outcome, why)
}

// loss reports whether the attempt lost a slice or a host, as the outcome to
// record and the reason; "" if not. One silent moment is no loss. Hosts that
// can be started again in place are.
func (d *Attempts) loss(j *state.Job) (schema.TaskState, string) {
	for _, name := range j.Last().Slices {
		st, listed := d.Listed[name]
		switch {
		case !listed && d.Known(d.SpecHeld(name, j)):
			return d.goneOutcome(name), fmt.Sprintf("slice %s is gone", name)
		case !listed: // nothing may be concluded
		case st.Phase == schema.SliceDead || st.Phase == schema.SliceDeleting:
			return d.goneOutcome(name), strings.TrimSuffix(fmt.Sprintf("slice %s is %s: %s", name, st.Phase, st.Reason), ": ")
		default:
			if why := d.LostHost(st); !why.IsZero() {
				d.Remove(st, why)
				return schema.TaskWorkerFailed, why.Text
			}
			if len(st.Down) > 0 {
				d.repair(st)
			}
			d.freshenOf(j, st)
		}
	}
	return "", ""
}

// freshenOf changes in place what can be of a slice that a running job has.
func (d *Attempts) freshenOf(j *state.Job, st *schema.SliceStatus) {
	if st.Spec.On != "" || st.Spec.Owner != j.Spec.Addr || st.Spec.Provider != schema.ProviderGCP {
		return
	}
	spec := st.Spec
	spec.Cloud.Live = plan.WithLabels(j.Spec.Resources.Cloud.Live, j.Spec.Labels)
	d.freshen(st, &spec)
}

// goneOutcome is what the end of a slice means for what ran there.
func (d *Attempts) goneOutcome(name string) schema.TaskState {
	if s := d.Next.Slices[name]; s != nil && s.Spec.Preemptible {
		return schema.TaskPreempted
	}
	return schema.TaskWorkerFailed
}

// noteReadiness records that an attempt came up, or why it has not yet.
func (d *Attempts) noteReadiness(j *state.Job, running bool) {
	addr, last := j.Spec.Addr, j.Last()
	first, waiting := plan.Reason{}, 0
	for i := range last.Tasks {
		t := &last.Tasks[i]
		h := d.Host(t.Slice, t.Host)
		why := ""
		switch {
		case t.State == schema.TaskSucceeded:
		case t.State != schema.TaskRunning:
			why = fmt.Sprintf("task %d is %s", i, describe(t))
		case h != nil && h.Task != nil && !h.Task.Ready():
			why = fmt.Sprintf("task %d is up but not healthy yet", i)
			if check := h.Task.Reason; check != "" {
				why += ": " + check
			}
		}
		if why != "" {
			if waiting == 0 {
				first = plan.Underway(why)
			}
			waiting++
		}
	}
	if running && j.Status != schema.JobRunning {
		d.Edit(addr).Status = schema.JobRunning
	}
	if ready := waiting == 0; ready != j.Ready {
		e := d.Edit(addr)
		e.Ready = ready
		if ready && e.Last().ReadyAt.IsZero() {
			e.Last().ReadyAt = d.Now
		}
	}
	if waiting == 0 && j.Reason != "" {
		d.Settled = append(d.Settled, addr)
	}
	if waiting > 0 {
		first.Text += change.More(waiting - 1)
		d.Wait(addr, first)
		return
	}
	for _, name := range last.Slices {
		st, listed := d.Listed[name]
		if !listed {
			continue
		}
		if host := Unheard(st, d.Obs.Hosts[name]); host >= 0 {
			d.Wait(addr, plan.Underway(fmt.Sprintf("host %d of slice %s was started again and has not reported yet", host, name)))
			return
		}
	}
}

// Unheard is the first host of a slice whose report is of a process that is not
// its agent any more, -1 for none: what the report says of its task may be over.
func Unheard(st *schema.SliceStatus, hosts []plan.Host) int {
	for i := range hosts {
		h := &hosts[i]
		if h.Host < len(st.Agents) && st.Agents[h.Host] != 0 && h.PID != 0 && h.PID != st.Agents[h.Host] {
			return h.Host
		}
	}
	return -1
}

func describe(t *state.Task) string {
	if t.Reason == "" {
		return string(t.State)
	}
	return string(t.State) + ": " + t.Reason
}
