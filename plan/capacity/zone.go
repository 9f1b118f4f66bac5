package capacity

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// openZone is the best zone for a job among those that are allowed, false where
// all are blocked, and why each is: of a job with alternatives on the one that it has here.
func (d *Zones) openZone(want *schema.Job, allowed func(zone string) bool) (string, []plan.Reason, bool) {
	var reasons []plan.Reason
	zones := d.ZonesOf(&want.Resources)
	for _, zone := range zones {
		if !allowed(zone) {
			continue
		}
		why := d.shutTo(want, zone)
		if why.None() {
			return zone, nil, true
		}
		reasons = append(reasons, why)
	}
	if len(zones) == 0 {
		reasons = append(reasons, plan.Because(plan.WaitConstraint, "no zone is declared where it could be: write zones in the provider block"))
	}
	return "", reasons, false
}

// shutTo says why a zone is shut to a job's own slices, nothing where it is open.
func (d *Zones) shutTo(want *schema.Job, zone string) plan.Reason {
	r := &want.Resources
	spec := schema.SliceSpec{
		Owner: want.Addr, Provider: r.Provider, TPU: r.TPU, GPU: r.GPU, MachineType: r.MachineType, Zone: zone, Preemptible: r.Preemptible, Cloud: r.Cloud,
	}
	if d.Obs.Inventories[r.Provider].Unlisted[zone] != "" { // it depends on what is known of the slice
		spec.Name = ownName(d.Stack, want, 0, zone)
	}
	return d.Shut(&spec)
}

// Anywhere allows each zone.
func Anywhere(string) bool { return true }

// GroupOf is how the jobs of a unit are tied together.
func (d *Zones) GroupOf(unit []*schema.Job) schema.JobGroup {
	if declared := groupAt(d.Desired, unit[0].Addr.GroupAddress()); declared != nil {
		return *declared
	}
	return schema.JobGroup{}
}

// ScopeOf is what the zones of a group's jobs have in common, "" if nothing need be.
func ScopeOf(g *schema.JobGroup, zone string) string {
	switch {
	case g.SameZone:
		return zone
	case g.SameRegion:
		return accelerators.RegionOf(zone)
	}
	return ""
}

// ChoosePlaces picks a zone and an alternative for each of the jobs that are to be placed,
// together with the others of their group that stay where they are. Of several scopes it is
// the one where the first job has its best alternative, then the second. Where there is none
// now it says why, for every place.
func (d *Zones) ChoosePlaces(fresh, stay []*schema.Job) (map[schema.Address]Place, []plan.Reason) {
	var zoneless map[schema.Address]Place
	fresh = slices.DeleteFunc(slices.Clone(fresh), func(want *schema.Job) bool {
		if InCloudZones(want) {
			return false
		}
		if len(want.Resources.Accelerators) > 0 {
			zoneless = with(zoneless, want.Addr, zonelessPlace(d, want))
		}
		return true
	})
	if len(fresh) == 0 {
		return zoneless, nil
	}
	group := d.GroupOf(fresh)
	var reasons []plan.Reason
	var best map[schema.Address]Place
	for _, scope := range d.ScopesOf(&group, fresh, stay) {
		chosen, why := d.choiceIn(fresh, func(zone string) bool { return ScopeOf(&group, zone) == scope })
		if len(why) == 0 && (best == nil || isBetter(fresh, chosen, best)) {
			best = chosen
		}
		reasons = append(reasons, why...)
	}
	if best != nil {
		maps.Copy(best, zoneless)
		return best, nil
	}
	if len(reasons) == 0 {
		reasons = append(reasons, plan.Because(plan.WaitConstraint, "no zone is declared where it could be: write zones in the provider block"))
	}
	last := &reasons[len(reasons)-1]
	last.Text += Staying(d.Pools, fresh[0].Addr)
	return nil, reasons
}

// ScopesOf are the scopes in which a group's jobs could be, best first: the one where
// others of it stay, if any do, or where its reservations are.
func (d *Zones) ScopesOf(group *schema.JobGroup, fresh, stay []*schema.Job) []string {
	var scopes []string
	add := func(zone string) {
		if scope := ScopeOf(group, zone); !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	for _, want := range stay {
		if zone := d.ZoneHeld(want.Addr); zone != "" && InCloudZones(want) {
			add(zone)
		}
	}
	if len(scopes) > 0 {
		return scopes
	}
	if g, tied := tiedGroup(d.Pools, group.Addr); tied {
		if scope := g.scope(fresh); scope != "" {
			return []string{scope}
		}
	} else {
		for _, zone := range zonesOfAny(d.Pools, fresh[0]) {
			add(zone)
		}
	}
	return scopes
}

// InCloudZones reports whether a job has slices of its own that are in zones.
func InCloudZones(want *schema.Job) bool {
	return want.Resources.Reservation == "" && want.Resources.Provider == schema.ProviderGCP
}

func (d *Zones) choiceIn(fresh []*schema.Job, allowed func(zone string) bool) (map[schema.Address]Place, []plan.Reason) {
	chosen := make(map[schema.Address]Place, len(fresh))
	for _, want := range fresh {
		place, reasons, ok := d.OpenPlace(want, allowed)
		if !ok {
			if len(reasons) == 0 {
				reasons = append(reasons, plan.Because(plan.WaitConstraint, want.Addr.String()+" has no zone in common with its group"))
			}
			return nil, reasons
		}
		chosen[want.Addr] = place
	}
	return chosen, nil
}

// ZoneHeld is the zone of the slices that a job has and is to keep, or to have again
// once what is left of them has gone.
func (d *Zones) ZoneHeld(addr schema.Address) string {
	j := d.Next.Jobs[addr]
	if j == nil || j.Status.Ended() || j.Stop {
		return ""
	}
	for _, name := range j.Slices {
		s := d.Next.Slices[name]
		if s == nil || leavesZone(s.Terminating.Decided()) {
			continue
		}
		return s.Spec.Zone
	}
	return ""
}

// IsStranded reports whether a job waits for a slice that was refused and is not to
// be asked for where it is meant to be.
func (d *Zones) IsStranded(want *schema.Job) bool {
	j := d.JobAt(want.Addr)
	return want.Resources.Reservation == "" && j != nil && !j.Running() && !d.IsUnseen(want) &&
		slices.ContainsFunc(j.Slices, func(name string) bool { return d.IsRejected(name) })
}

// AwaitsOwnProbes reports whether those of a unit's jobs that are stranded wait for no more
// than what becomes of other slices of the unit, which try the place.
func (d *Zones) AwaitsOwnProbes(unit, stranded []*schema.Job) bool {
	tries := func(want *schema.Job) bool {
		j := d.JobAt(want.Addr)
		return j != nil && slices.ContainsFunc(j.Slices, func(name string) bool {
			s := d.Next.Slices[name]
			return s != nil && d.isTried(s)
		})
	}
	isShutOut := func(want *schema.Job) bool {
		return slices.ContainsFunc(d.JobAt(want.Addr).Slices, func(name string) bool {
			return d.IsRejected(name) && !d.Shut(&d.Next.Slices[name].Spec).Underway
		})
	}
	return slices.ContainsFunc(unit, tries) && !slices.ContainsFunc(stranded, isShutOut)
}

// IsUnseen reports whether a job holds a slice that may live and cannot be listed now.
func (d *Zones) IsUnseen(want *schema.Job) bool {
	j := d.JobAt(want.Addr)
	return slices.ContainsFunc(j.Slices, func(name string) bool { return !d.Known(d.SpecHeld(name, j)) && !d.IsRejected(name) })
}

// IsOftenRejected reports whether the place of a job's missing slice has failed again
// and again.
func (d *Zones) IsOftenRejected(want *schema.Job) bool {
	for _, name := range d.Next.Jobs[want.Addr].Slices {
		s := d.Next.Slices[name]
		if s == nil || !d.IsRejected(name) {
			continue
		}
		for _, place := range [2]string{plan.StockPlace(&s.Spec), QuotaPlace(&s.Spec)} {
			if d.Next.ZoneHealth[place].Failures >= Rejections {
				return true
			}
		}
	}
	return false
}

// IsLeaving reports whether a job has begun to give up its slices.
func (d *Zones) IsLeaving(addr schema.Address) bool {
	return slices.ContainsFunc(d.Next.Jobs[addr].Slices, func(name string) bool {
		s := d.Next.Slices[name]
		return s != nil && s.Terminating.Decided() == state.CauseMoved
	})
}

// Outside says which of a job's slices are in zones that it is not to be in, by
// what it declares of its own.
func (d *Zones) Outside(want *schema.Job, held []string) plan.Reason {
	if len(want.Resources.Zones) == 0 && len(want.Resources.Regions) == 0 {
		return plan.Reason{}
	}
	zones := d.ZonesOf(&d.Running(want).Resources)
	for _, name := range held {
		if s := d.Next.Slices[name]; s != nil && s.Spec.Zone != "" && !slices.Contains(zones, s.Spec.Zone) {
			return plan.Because(plan.WaitConstraint, fmt.Sprintf("slice %s is in %s", name, s.Spec.Zone))
		}
	}
	return plan.Reason{}
}

// IsRid reports whether a job goes on without a slice that does not go away: nothing
// runs there, and the deletion of unwanted slices covers it.
func (d *Zones) IsRid(j *state.Job, name string) bool {
	return d.IsStuck(name) && !j.Running() && !j.Status.Ended() && !j.Stop && !d.Leaving[j.Spec.Addr]
}

// InsteadOf gives a job another slice for its i-th, which does not go away.
func (d *Zones) InsteadOf(want *schema.Job, i int) plan.Reason {
	j := d.Next.Jobs[want.Addr]
	stuck := j.Slices[i]
	zone := d.Next.Slices[stuck].Spec.Zone
	for index := 0; ; index++ {
		spec := d.OwnSlice(d.Running(want), index, zone)
		if d.IsTaken(&spec) || d.IsStuck(spec.Name) || slices.Contains(j.Slices, spec.Name) {
			continue
		}
		e := d.Edit(want.Addr)
		e.Slices = slices.Clone(e.Slices)
		e.Slices[i] = d.Record([]schema.SliceSpec{spec})[0]
		return plan.Underway(fmt.Sprintf("slice %s does not go away; %s takes its place", stuck, spec.Name))
	}
}
