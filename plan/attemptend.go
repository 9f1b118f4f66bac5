package plan

import (
	"cmp"
	"fmt"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

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
	outcome, by := verdict(last)
	if outcome == schema.TaskSucceeded && !d.next.Jobs[addr].YieldsTo.IsZero() {
		cause, why = schema.TaskSucceeded, "" // it was done before it was told to yield
	}
	if last.EndedBy != nil && outcome == cause && by != *last.EndedBy { // a report of an earlier end came later
		d.edit(addr).Last().EndedBy = &by
		last = d.next.Jobs[addr].Last()
		why = taskReason(last, by)
	}
	if cause == schema.TaskFailed || cause == schema.TaskUnschedulable {
		infrastructure := cmp.Or(lost, taskOutcome(last))
		if infrastructure == schema.TaskExitUnknown {
			cause, why = infrastructure, why+" (and how another of its tasks ended is not known)"
		} else if infrastructure != "" {
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
		d.terminate(name, d.died(st))
	} else if why := d.lostHost(st); !why.IsZero() {
		d.terminate(name, why)
	}
	if d.isTerminating(name) || st.Phase == schema.SliceDeleting {
		d.remove(st, state.Termination{})
		// Machines that were taken away, and are silent, run nothing; how long
		// it takes to clear away what is left of them is another matter.
		taken := d.next.Slices[name].Taken && d.isSilent(st)
		return taken, taken
	}
	cur := d.obs.Assignments[name]
	if cur.Generation < a.StopGeneration {
		d.halt(addr, name, a.StopGeneration, stopText(d.next.Jobs[addr], a))
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
	endUnheard(e, last)
	for i := range last.Tasks {
		if t := &last.Tasks[i]; t.BadHost {
			d.terminate(t.Slice, state.Termination{Cause: state.CauseHostBad, Text: fmt.Sprintf("host %d is bad: %s", t.Host, t.Reason)})
		}
	}
	settle(e, d.now)
	if e.Status.Ended() {
		d.released(addr, decided(state.CauseEnded))
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
