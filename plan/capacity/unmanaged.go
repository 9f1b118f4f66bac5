package capacity

import (
	"slices"

	"github.com/fray-ml/fray/schema"
)

// poolMoves reports whether a slice of a reservation is to be had in another zone:
// it was refused where it is meant to be, or is not to be there any more.
func (d *Pools) poolMoves(r *schema.Reservation, name string) bool {
	s := d.Next.Slices[name]
	if s.Spec.Zone == "" || s.Spec.Provider != r.Provider {
		return false
	}
	if addr, held := d.HeldBy(name); held && d.Next.Jobs[addr] != nil && d.Next.Jobs[addr].Running() {
		return false
	}
	if len(r.Zones)+len(r.Regions) > 0 && !slices.Contains(d.poolZones(r), s.Spec.Zone) {
		return true
	}
	if d.IsApart(r, s.Spec.Zone) {
		return true
	}
	if !d.IsRejected(name) {
		return false
	}
	there := d.poolZone(r, s.Spec.Index)
	other := d.poolSlice(r, s.Spec.Index, there)
	return there != s.Spec.Zone && d.Shut(&other).None()
}

// poolZone is the best zone for a slice of a reservation, the first where all are shut.
func (d *Pools) poolZone(r *schema.Reservation, index int) string {
	zones := zonesNear(d, r)
	for _, zone := range zones {
		if spec := d.poolSlice(r, index, zone); d.Shut(&spec).None() {
			return zone
		}
	}
	if len(zones) == 0 {
		return ""
	}
	return zones[0]
}
