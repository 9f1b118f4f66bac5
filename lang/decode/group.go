package decode

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
)

// checkTies reports groups of which no region, or zone, can have all members.
func (w *Decoding) checkTies(d *schema.Desired) {
	for i := range d.Groups {
		g := &d.Groups[i]
		if !g.SameRegion && !g.SameZone {
			continue
		}
		var common []string
		var first schema.Address
		for _, m := range w.places(d, g) {
			switch {
			case len(m.scopes) == 0: // not known
				continue
			case first.IsZero():
				common, first = m.scopes, m.addr
				continue
			}
			left := slices.DeleteFunc(slices.Clone(common), func(scope string) bool { return !slices.Contains(m.scopes, scope) })
			if len(left) == 0 {
				w.reportApart(g, common, m)
				break
			}
			common = left
		}
	}
}

// place is where a member of a group may be.
type place struct {
	addr   schema.Address
	scopes []string // zones or regions
}

// places are those of the members of a group that have slices of their own in the cloud.
func (w *Decoding) places(d *schema.Desired, g *schema.JobGroup) []place {
	var all []place
	add := func(addr schema.Address, r *schema.Resources) {
		if addr.GroupAddress() != g.Addr || r.Provider != schema.ProviderGCP || r.Reservation != "" {
			return
		}
		var scopes []string
		for _, zone := range w.zonesOf(r) {
			scope := zone
			if !g.SameZone {
				scope = accelerators.RegionOf(zone)
			}
			if !slices.Contains(scopes, scope) {
				scopes = append(scopes, scope)
			}
		}
		all = append(all, place{addr: addr, scopes: scopes})
	}
	for i := range d.Reservations {
		r := &d.Reservations[i]
		add(r.Addr, &schema.Resources{Provider: r.Provider, TPU: r.Max.TPU, GPU: r.Max.GPU, Zones: r.Zones, Regions: r.Regions})
	}
	for i := range d.Jobs {
		add(d.Jobs[i].Addr, &d.Jobs[i].Resources)
	}
	return all
}

func (w *Decoding) reportApart(g *schema.JobGroup, others []string, m place) {
	what, remedy := "region", "same_region = false lets them be anywhere"
	if g.SameZone {
		what, remedy = "zone", "same_region = true in place of same_zone allows several zones"
	}
	_, decl := w.session.Declared(g.Addr)
	w.session.ErrorAt(decl.Block.Range(), "No place for the group", fmt.Sprintf(
		"No %s can have all members of %s: %s can be in %s, others only in %s. Give them zones of one %s; %s.",
		what, g.Addr, m.addr, strings.Join(m.scopes, ", "), strings.Join(others, ", "), what, remedy))
}

// zonesOf are the zones where resources may be had, of any of their alternatives.
func (w *Decoding) zonesOf(r *schema.Resources) []string {
	var zones []string
	for _, a := range r.Alternatives() {
		stated := r.Zones
		if len(r.Accelerators) > 0 && len(stated) > 0 {
			stated = accelerators.ZonesWith(string(a), stated, w.GCP.Offers)
		}
		zones = append(zones, accelerators.CandidateZones(&w.GCP, cmp.Or(a.TPU(), r.MachineType, a.GPU().Kind()), stated, r.Regions)...)
	}
	return zones
}
