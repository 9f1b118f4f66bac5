package plan

import (
	"cmp"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// released lets go of a job's slices and reports whether it holds none any
// more. Slices of its own are deleted, which also ends what runs there; those
// of a pool are given back, and those that are kept for the next job set aside,
// once their hosts have been told that nothing is to run.
func (d *differ) released(addr schema.Address, why state.Termination) bool {
	j := d.next.Jobs[addr]
	if why.Cause == state.CauseReplaced {
		d.terminateIdle(addr, why)
	}
	if !j.Running() && len(j.Slices) == 0 {
		return true
	}
	pooled, keeps := drawsWhole(&j.Spec.Resources), d.keepsWarm(j, why.Cause)
	var left []reason
	// A service first finishes what others wait for, as long as its grace lets it.
	if (pooled || keeps || j.Spec.IsService()) && !d.ended(addr, why.Text) {
		return false
	}
	switch {
	case pooled:
		left = d.giveBack(d.next.Jobs[addr])
	case keeps:
		left = d.setAside(addr, why)
	default:
		left = d.deleteOwn(d.next.Jobs[addr], why)
	}
	if len(left) > 0 {
		if d.next.Jobs[addr].Ready {
			d.edit(addr).Ready = false
		}
		d.wait(addr, left...)
		return false
	}
	if d.next.Jobs[addr].Running() {
		d.finish(addr, schema.TaskKilled, why.Text)
	}
	if len(d.next.Jobs[addr].Slices) > 0 {
		d.edit(addr).Slices = nil
		d.tally(addr)
	}
	return true
}

// deleteOwn deletes the slices that were made for the job and says which of
// them may still be there.
func (d *differ) deleteOwn(j *state.Job, why state.Termination) []reason {
	var left []reason
	for _, name := range j.Slices {
		st, listed := d.slices[name]
		spec := d.specHeld(name, j)
		switch {
		case spec.Owner != j.Spec.Addr && !spec.Owner.IsZero(): // it is another job's by now
		case listed && d.isRid(j, name):
		case listed:
			d.remove(st, why)
			left = append(left, d.deletion(name))
		case !d.known(spec) && !d.isRefused(name): // what was, would go as an orphan if it were there
			left = append(left, d.cannotAsk(spec))
		default:
			d.dropSlice(name)
		}
	}
	return left
}

// giveBack says which slices of a pool a job that runs no more cannot leave to
// others yet. Their assignments must not name it: a host that comes back would
// run it again. That the hosts are idle is seen to by whoever is next.
func (d *differ) giveBack(j *state.Job) []reason {
	var left []reason
	for _, name := range j.Slices {
		_, listed := d.slices[name]
		cur := d.obs.Assignments[name]
		_, damaged := d.obs.Damaged[name]
		switch spec := d.specHeld(name, j); {
		case !listed && !d.known(spec):
			left = append(left, d.cannotAsk(spec))
		case listed && (damaged || cur.Run != nil && cur.Run.JobID == j.ID):
			d.halt(j.Spec.Addr, name, d.nextGeneration([]string{name}), "stopped: its slice is given back")
			left = append(left, underway("slice "+name+" is being given back"))
		}
	}
	return left
}

// specHeld is the spec of a slice that a job holds, with no more than the provider
// where the slice has no record.
func (d *differ) specHeld(name string, j *state.Job) *schema.SliceSpec {
	if s := d.next.Slices[name]; s != nil {
		return &s.Spec
	}
	return &schema.SliceSpec{Name: name, Provider: cmp.Or(j.Spec.Resources.Provider, schema.ProviderLocal)}
}
