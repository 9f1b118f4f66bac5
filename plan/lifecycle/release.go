package lifecycle

import (
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Released lets go of a job's slices and reports whether it holds none any
// more. Slices of its own are deleted, which also ends what runs there; those
// of a pool are given back, and those that are kept for the next job set aside,
// once their hosts have been told that nothing is to run.
func (d *Attempts) Released(addr schema.Address, why state.Termination) bool {
	j := d.Next.Jobs[addr]
	if why.Cause == state.CauseReplaced {
		d.terminateIdle(addr, why)
	}
	if !j.Running() && len(j.Slices) == 0 {
		return true
	}
	pooled, keeps := DrawsWhole(&j.Spec.Resources), d.keepsWarm(j, why.Cause)
	var left []plan.Reason
	// A service first finishes what others wait for, as long as its grace lets it.
	hooked := d.hookGoesFirst(addr, why.Cause)
	if (pooled || keeps || j.Spec.IsService() || hooked) && !d.stopAndReportStopped(addr, why.Text) {
		return false
	}
	switch {
	case pooled:
		left = d.giveBack(d.Next.Jobs[addr])
	case keeps:
		left = d.setAside(addr, why)
	default:
		left = d.deleteOwn(d.Next.Jobs[addr], why)
	}
	if len(left) > 0 {
		if d.Next.Jobs[addr].Ready {
			d.Edit(addr).Ready = false
		}
		d.Wait(addr, left...)
		return false
	}
	if d.Next.Jobs[addr].Running() {
		d.recordOutcome(addr, schema.TaskKilled, why.Text)
	}
	if len(d.Next.Jobs[addr].Slices) > 0 {
		d.Edit(addr).Slices = nil
		d.Tally(addr)
	}
	return true
}

// deleteOwn deletes the slices that were made for the job and says which of
// them may still be there.
func (d *Attempts) deleteOwn(j *state.Job, why state.Termination) []plan.Reason {
	var left []plan.Reason
	for _, name := range j.Slices {
		st, listed := d.Listed[name]
		spec := d.SpecHeld(name, j)
		switch {
		case spec.Owner != j.Spec.Addr && !spec.Owner.IsZero(): // it is another job's by now
		case listed && d.IsRid(j, name):
		case listed:
			d.Remove(st, why)
			left = append(left, d.Deletion(name))
		case !d.Known(spec) && !d.IsRejected(name): // what was, would go as an orphan if it were there
			left = append(left, d.CannotAsk(spec))
		default:
			d.DropSlice(name)
		}
	}
	return left
}

// giveBack says which slices of a pool a job that runs no more cannot leave to
// others yet. Their assignments must not name it: a host that comes back would
// run it again. The next holder checks that the hosts are idle.
func (d *Attempts) giveBack(j *state.Job) []plan.Reason {
	var left []plan.Reason
	for _, name := range j.Slices {
		_, listed := d.Listed[name]
		cur := d.Obs.Assignments[name]
		_, damaged := d.Obs.Damaged[name]
		switch spec := d.SpecHeld(name, j); {
		case !listed && !d.Known(spec):
			left = append(left, d.CannotAsk(spec))
		case listed && (damaged || cur.Run != nil && cur.Run.JobID == j.ID):
			d.Halt(j.Spec.Addr, name, d.NextGeneration([]string{name}), "stopped: its slice is given back")
			left = append(left, plan.Underway("slice "+name+" is being given back"))
		}
	}
	return left
}
