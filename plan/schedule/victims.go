package schedule

import (
	"slices"

	"github.com/fray-ml/fray/schema"
)

// Victims chooses the jobs that make room for others.
type Victims struct {
	*Claims

	yielding   []schema.Address // jobs that make room for others
	infeasible []infeasible     // see makeRoom
	victims    []*victim        // made when first asked for, see candidates
}

// WantedSlice reports whether a job or a declared reservation holds a slice, or it
// is kept for the next job.
// What a reservation has too much is pools' business.
func (d *Victims) WantedSlice(name string, owner schema.Address) bool {
	if owner.Kind == schema.KindReservation {
		if _, recorded := d.Next.Resources[owner]; recorded {
			return true
		}
		_, held := d.HeldBy(name)
		return held
	}
	j := d.Next.Jobs[owner]
	return j != nil && (slices.Contains(j.Slices, name) || slices.Contains(j.Staged, name) || d.IsKeptIdle(name))
}
