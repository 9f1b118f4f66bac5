package reconcile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// rewriteDamaged replaces the assignments that cannot be read where no attempt runs
// which is assigned anew anyway: its slice's hosts are told to run nothing, which
// is what the state knows of them.
func (d *Reconciler) rewriteDamaged() {
	if len(d.Obs.Damaged) == 0 {
		return
	}
	running := map[string]bool{}
	for _, j := range d.Next.Jobs {
		if !j.Running() {
			continue
		}
		for _, name := range j.Last().Slices {
			running[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Obs.Damaged)) {
		st, listed := d.Listed[name]
		if !listed {
			continue
		}
		owner := d.ownerNow(name, st)
		d.Drift(plan.Drift{Kind: plan.DriftAssignment, Addr: owner, Slice: name, Found: fmt.Sprintf("what slice %s is to run cannot be read (%s)", name, d.Obs.Damaged[name]), Then: "will be written again"})
		if _, acting := d.Acting[name]; !acting && !running[name] {
			d.Halt(owner, name, d.NextGeneration([]string{name}), "stopped: what its slice is to run cannot be read")
		}
	}
}

// ownerNow is whose slice it is by the state, which may have renamed the owner.
func (d *Reconciler) ownerNow(name string, st *schema.SliceStatus) schema.Address {
	if s := d.Next.Slices[name]; s != nil {
		return s.Spec.Owner
	}
	return st.Spec.Owner
}
