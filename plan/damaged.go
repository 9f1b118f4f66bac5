package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/schema"
)

// rewrite replaces the assignments that cannot be read where no attempt runs
// which is assigned anew anyway: its slice's hosts are told to run nothing, which
// is what the state knows of them.
func (d *differ) rewrite() {
	if len(d.obs.Damaged) == 0 {
		return
	}
	running := map[string]bool{}
	for _, j := range d.next.Jobs {
		if !j.Running() {
			continue
		}
		for _, name := range j.Last().Slices {
			running[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.obs.Damaged)) {
		st, listed := d.slices[name]
		if !listed {
			continue
		}
		owner := d.ownerNow(name, st)
		d.drift(owner, name, fmt.Sprintf("what slice %s is to run cannot be read (%s)", name, d.obs.Damaged[name]), "will be written again")
		if _, acting := d.acting[name]; !acting && !running[name] {
			d.halt(owner, name, d.nextGeneration([]string{name}), "stopped: what its slice is to run cannot be read")
		}
	}
}

// ownerNow is whose slice it is by the state, which may have renamed the owner.
func (d *differ) ownerNow(name string, st *schema.SliceStatus) schema.Address {
	if s := d.next.Slices[name]; s != nil {
		return s.Spec.Owner
	}
	return st.Spec.Owner
}
