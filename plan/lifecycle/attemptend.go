package lifecycle

import (
	"cmp"
	"fmt"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// stopAttempt stops all tasks of the running attempt and, once every host has confirmed
// that, records the outcome. cause is the outcome unless hosts turn out lost.
func (d *Attempts) stopAttempt(addr schema.Address, cause schema.TaskState, why string) {
	last := d.Next.Jobs[addr].Last()
	if last.StopGeneration == 0 {
		e := d.Edit(addr)
		e.Ready = false
		last = e.Last()
		last.StopGeneration = max(d.NextGeneration(last.Slices), last.Generation+1) // its assignments may be unread
		last.Cause, last.Reason = cause, why
		last.StoppingSince, last.Stop = d.Now, cmp.Or(last.Stop, d.stopReason(e, cause))
	}
	confirmed, lost := true, schema.TaskState("")
	for _, name := range last.Slices {
		ended, gone := d.confirmStopped(name, addr, last)
		confirmed = confirmed && ended
		if gone {
			lost = cmp.Or(lost, d.goneOutcome(name))
		}
	}
	if !confirmed {
		d.Wait(addr, plan.Underway(fmt.Sprintf("attempt %d is being stopped: %s", last.Number, last.Reason)))
		return
	}
	cause, why = last.Cause, last.Reason
	outcome, by := plan.AttemptOutcome(last)
	if outcome == schema.TaskSucceeded && !d.Next.Jobs[addr].YieldsTo.IsZero() {
		cause, why = schema.TaskSucceeded, "" // it was done before it was told to yield
	}
	if last.EndedBy != nil && outcome == cause && by != *last.EndedBy { // a report of an earlier end came later
		d.Edit(addr).Last().EndedBy = &by
		last = d.Next.Jobs[addr].Last()
		why = plan.TaskReason(last, by)
	}
	if cause == schema.TaskFailed || cause == schema.TaskUnschedulable {
		infrastructure := cmp.Or(lost, plan.TaskOutcome(last))
		if infrastructure == schema.TaskExitUnknown {
			cause, why = infrastructure, why+" (and how another of its tasks ended is not known)"
		} else if infrastructure != "" {
			cause, why = infrastructure, why+" (and part of what it ran on was lost)"
		}
	}
	d.recordOutcome(addr, cause, why)
}

// confirmStopped reports whether an attempt has ended on all hosts of one of its
// slices, and else stops it there; gone: the slice itself is no more.
func (d *Attempts) confirmStopped(name string, addr schema.Address, a *state.Attempt) (ended, gone bool) {
	st, listed := d.Listed[name]
	if !listed {
		gone = d.Known(d.SpecHeld(name, d.Next.Jobs[addr]))
		return gone, gone
	}
	d.RecordOf(st)
	if st.Phase == schema.SliceDead {
		d.terminate(name, d.died(st))
	} else if why := d.LostHost(st); !why.IsZero() {
		d.terminate(name, why)
	}
	if d.isTerminating(name) || st.Phase == schema.SliceDeleting {
		d.Remove(st, state.Termination{})
		// Machines that were taken away, and are silent, run nothing; how long
		// it takes to clear away what is left of them is another matter.
		taken := d.Next.Slices[name].Preempted && d.HostingSliceSilent(st)
		return taken, taken
	}
	cur := d.Obs.Assignments[name]
	if cur.Generation < a.StopGeneration {
		d.haltFor(a.Stop, addr, name, a.StopGeneration, StopText(d.Next.Jobs[addr], a))
		return false, false
	}
	for n := range st.Spec.Hosts {
		if h := d.Host(name, n); h == nil || h.Generation < a.StopGeneration {
			if len(st.Down) > 0 { // who does not run cannot confirm
				d.repair(st)
			}
			return false, false
		}
	}
	return true, false
}

// recordOutcome gives the running attempt its outcome and decides what follows.
func (d *Attempts) recordOutcome(addr schema.Address, outcome schema.TaskState, why string) {
	e := d.Edit(addr)
	last := e.Last()
	last.Outcome, last.Reason, last.EndedAt = outcome, why, EndOf(last, d.Now)
	endUnheard(e, last)
	for i := range last.Tasks {
		if t := &last.Tasks[i]; t.BadHost {
			d.terminate(t.Slice, state.Termination{Cause: state.CauseHostBad, Text: fmt.Sprintf("host %d is bad: %s", t.Host, t.Reason)})
		}
	}
	plan.Settle(e, d.Now)
	if d.beginQueued(e) {
		return // on the slices that it has
	}
	if e.Status.Ended() {
		d.Released(addr, change.Decided(state.CauseEnded))
	}
}

// EndOf is when the last task of an attempt ended, as its host recorded it: long
// ago, perhaps, where no step was made meanwhile. It is now where a task left no
// end, and within the attempt where a host's clock is wrong.
func EndOf(a *state.Attempt, now time.Time) time.Time {
	var last time.Time
	for i := range a.Tasks {
		end := a.Tasks[i].EndedAt
		if end.IsZero() {
			return now
		}
		last = capacity.Later(last, end)
	}
	switch {
	case last.IsZero() || last.After(now):
		return now
	case last.Before(a.StartedAt):
		return a.StartedAt
	}
	return last
}

// stopSlack is what hosts get beyond a hook's time and the grace before the slice of an
// attempt that is being stopped is deleted all the same.
const stopSlack = time.Minute

// stopReason is for what an attempt is stopped whose outcome will be the cause.
func (d *Attempts) stopReason(j *state.Job, cause schema.TaskState) schema.StopReason {
	last := j.Last()
	switch {
	case d.Leaving[j.Spec.Addr]:
		return schema.StopDestroy
	case last.Changed != nil:
		return schema.StopRestart
	case j.Stop, !j.YieldsTo.IsZero(), j.Scheduled != nil && j.Scheduled.Replace:
		return schema.StopRequest
	case cause == schema.TaskPreempted, cause == schema.TaskWorkerFailed:
		return schema.StopPreemption
	}
	return schema.StopRestart
}

// hookGoesFirst reports whether the slices of a job are kept for its hook: until its hosts have
// confirmed that the attempt has ended, or had the time for that.
func (d *Attempts) hookGoesFirst(addr schema.Address, why state.Cause) bool {
	j := d.Next.Jobs[addr]
	hook, last := j.Spec.BeforeStop, j.Last()
	if hook == nil || !j.Running() {
		return false
	}
	if last.StopGeneration == 0 {
		stop := stopOf(why)
		if !hook.RunsOn(stop, 0) {
			return false
		}
		d.Edit(addr).Last().Stop = stop
		return true
	}
	if !hook.RunsOn(last.Stop, 0) {
		return false
	}
	until := last.StoppingSince.Add(time.Duration(hook.Timeout+j.Spec.StopGrace) + stopSlack)
	d.WakeAt(until)
	return d.Now.Before(until)
}

// stopOf is for what an attempt is stopped whose slices go.
func stopOf(why state.Cause) schema.StopReason {
	switch why {
	case state.CauseJobRemoved, state.CauseUndeclared, state.CauseReplaced, state.CauseExpired, state.CauseUnneeded,
		state.CauseReshaped, state.CauseUnused, state.CauseMoved:
		return schema.StopDestroy
	case state.CausePreempted, state.CauseNotice, state.CauseHostBad, state.CauseDead, state.CauseHostLost, state.CauseHostGone:
		return schema.StopPreemption
	case state.CauseNone, state.CauseBoot, state.CauseQueue, state.CauseIdleUnwell, state.CauseUnknown, state.CauseStopped,
		state.CauseEnded, state.CauseNotPlaced, state.CauseYielded, state.CauseMakesRoom, state.CauseIdle, state.CausePlacedAgain,
		state.CauseBudget:
	}
	return schema.StopRequest
}
