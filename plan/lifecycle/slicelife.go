package lifecycle

import (
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
)

// Slices decides what becomes of slices: created, updated, repaired, deleted.
type Slices struct {
	*capacity.Headroom

	hosting map[string]plan.Reason // see bringUpHost
}

// NextGeneration is above every generation that the slices have seen.
func (d *Slices) NextGeneration(names []string) int64 {
	var highest int64
	for _, name := range names {
		highest = max(highest, d.Obs.Assignments[name].Generation)
		for _, h := range d.Obs.Hosts[name] {
			highest = max(highest, h.Generation)
		}
	}
	return highest + 1
}

func (d *Slices) hasMailbox(name string) bool {
	_, assigned := d.Obs.Assignments[name]
	return assigned || len(d.Obs.Hosts[name]) > 0 || d.Obs.Booting[name]
}

// Forget removes the mailbox of a slice that is gone.
func (d *Slices) Forget(name string, owner schema.Address) {
	d.Act(plan.Action{Verb: plan.ForgetSlice, Addr: owner, Slice: &schema.SliceSpec{Name: name}, AfterSave: true})
}

// isStaged reports whether a slice waits to take over from others of its owner.
func (d *Slices) isStaged(spec *schema.SliceSpec) bool {
	j := d.JobAt(spec.Owner)
	return j != nil && slices.Contains(j.Staged, spec.Name)
}
