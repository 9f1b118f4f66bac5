package schedule

import (
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/lifecycle"
)

// holdsForMoney reports whether a unit is given no slices since a namespace of it has used its
// budget of money, and has those of it that want some wait for that. With action hold, what has
// begun goes on: it is tried again where it was interrupted.
func (d *Placer) holdsForMoney(u *capacity.Unit) bool {
	if !u.Fresh || len(d.Money) == 0 {
		return false
	}
	begun := false
	for _, want := range u.Jobs {
		j := d.JobAt(want.Addr)
		begun = begun || j != nil && (j.Attempt > 0 || len(j.Slices) > 0)
	}
	var why plan.Reason
	for _, want := range u.Jobs {
		b := d.Money[want.Namespace]
		if held := lifecycle.HeldForMoney(b); why.None() && (!begun || b != nil && b.Stops()) {
			why = held
		}
	}
	if why.None() {
		return false
	}
	for _, want := range u.Jobs {
		if d.Placeable(want) {
			d.Wait(want.Addr, why)
		}
	}
	return true
}
