package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Located is the spec of a slice in a zone, as a provider with these offers makes
// it. Slices of one owner and index in different zones have different names, so
// that one that turns up late is never taken for another.
func Located(spec schema.SliceSpec, zone string, offers []schema.Market) schema.SliceSpec {
	if zone == "" {
		return spec
	}
	spec.Zone = zone
	spec.Name = sliceNameIn(zone, spec.Stack, spec.Owner, spec.Index)
	spec.Cloud.Engine = cmp.Or(spec.Cloud.Engine, schema.EngineOf(spec.TPU, zone, offers))
	return spec
}

// provider is the declared provider of a name, an empty one if there is none.
func (d *differ) provider(name schema.ProviderName) *schema.Provider {
	for i := range d.desired.Providers {
		if d.desired.Providers[i].Name == name {
			return &d.desired.Providers[i]
		}
	}
	return &schema.Provider{Name: name}
}

// zonesOf are the zones where a job's own slices may be, best first; "" alone where
// its provider has none.
func (d *differ) zonesOf(r *schema.Resources) []string {
	if r.Provider != schema.ProviderGCP {
		return []string{""}
	}
	return schema.CandidateZones(d.provider(r.Provider), cmp.Or(r.TPU, r.MachineType), r.Zones, r.Regions)
}

// poolZones are the same for the slices of a reservation.
func (d *differ) poolZones(r *schema.Reservation) []string {
	return d.zonesOf(&schema.Resources{Provider: r.Provider, TPU: r.Min.TPU, Zones: r.Zones, Regions: r.Regions})
}

func (d *differ) ownSlice(want *schema.Job, index int, zone string) schema.SliceSpec {
	return Located(OwnSlice(d.stack, want, index), zone, d.provider(want.Resources.Provider).Offers)
}

func (d *differ) poolSlice(r *schema.Reservation, index int, zone string) schema.SliceSpec {
	return Located(PoolSlice(d.stack, r, index), zone, d.provider(r.Provider).Offers)
}

// openZone is the best zone for a job among those that are allowed, false where
// all are shut, and why each is.
func (d *differ) openZone(want *schema.Job, allowed func(zone string) bool) (string, []reason, bool) {
	var reasons []reason
	zones := d.zonesOf(&want.Resources)
	for _, zone := range zones {
		if !allowed(zone) {
			continue
		}
		spec := d.ownSlice(want, 0, zone)
		why := d.shut(&spec)
		if why.none() {
			return zone, nil, true
		}
		reasons = append(reasons, why)
	}
	if len(zones) == 0 {
		reasons = append(reasons, because(WaitConstraint, "no zone is declared where it could be: write zones in the provider block"))
	}
	return "", reasons, false
}

func anywhere(string) bool { return true }

// groupOf is how the jobs of a unit are tied together.
func (d *differ) groupOf(unit []*schema.Job) schema.JobGroup {
	group := unit[0].Addr.GroupAddress()
	for i := range d.desired.Groups {
		if d.desired.Groups[i].Addr == group && !group.IsZero() {
			return d.desired.Groups[i]
		}
	}
	return schema.JobGroup{}
}

// scopeOf is what the zones of a group's jobs have in common, "" if nothing need be.
func scopeOf(g *schema.JobGroup, zone string) string {
	switch {
	case g.SameZone:
		return zone
	case g.SameRegion:
		return schema.RegionOf(zone)
	}
	return ""
}

// chooseZones picks a zone for each of the jobs that are to be placed, together
// with the others of their group that stay where they are. Where there is none now
// it says why, for every place.
func (d *differ) chooseZones(fresh, stay []*schema.Job) (map[schema.Address]string, []reason) {
	fresh = slices.DeleteFunc(slices.Clone(fresh), func(want *schema.Job) bool { return !inCloudZones(want) })
	if len(fresh) == 0 {
		return nil, nil
	}
	group := d.groupOf(fresh)
	var reasons []reason
	for _, scope := range d.scopesOf(&group, fresh, stay) {
		chosen, why := d.choiceIn(fresh, func(zone string) bool { return scopeOf(&group, zone) == scope })
		if len(why) == 0 {
			return chosen, nil
		}
		reasons = append(reasons, why...)
	}
	if len(reasons) == 0 {
		reasons = append(reasons, because(WaitConstraint, "no zone is declared where it could be: write zones in the provider block"))
	}
	return nil, reasons
}

// scopesOf are the scopes in which a group's jobs could be, best first: the one where
// others of it stay, if any do.
func (d *differ) scopesOf(group *schema.JobGroup, fresh, stay []*schema.Job) []string {
	var scopes []string
	add := func(zone string) {
		if scope := scopeOf(group, zone); !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	for _, want := range stay {
		if zone := d.zoneHeld(want.Addr); zone != "" && inCloudZones(want) {
			add(zone)
		}
	}
	if len(scopes) == 0 {
		for _, zone := range d.zonesOf(&fresh[0].Resources) {
			add(zone)
		}
	}
	return scopes
}

// inCloudZones reports whether a job has slices of its own that are in zones.
func inCloudZones(want *schema.Job) bool {
	return want.Resources.Reservation == "" && want.Resources.Provider == schema.ProviderGCP
}

func (d *differ) choiceIn(fresh []*schema.Job, allowed func(zone string) bool) (map[schema.Address]string, []reason) {
	chosen := make(map[schema.Address]string, len(fresh))
	for _, want := range fresh {
		zone, reasons, ok := d.openZone(want, allowed)
		if !ok {
			if len(reasons) == 0 {
				reasons = append(reasons, because(WaitConstraint, want.Addr.String()+" has no zone in common with its group"))
			}
			return nil, reasons
		}
		chosen[want.Addr] = zone
	}
	return chosen, nil
}

// zoneHeld is the zone of the slices that a job has and is to keep, or to have again
// once what is left of them has gone.
func (d *differ) zoneHeld(addr schema.Address) string {
	j := d.next.Jobs[addr]
	if j == nil || j.Status.Ended() || j.Stop {
		return ""
	}
	for _, name := range j.Slices {
		s := d.next.Slices[name]
		if s == nil || leavesZone(s.Terminating.Decided()) {
			continue
		}
		return s.Spec.Zone
	}
	return ""
}

// isStranded reports whether a job waits for a slice that was refused and is not to
// be asked for where it is meant to be.
func (d *differ) isStranded(want *schema.Job) bool {
	j := d.next.Jobs[want.Addr]
	return want.Resources.Reservation == "" && j != nil && !j.Running() && !d.isUnseen(want) &&
		slices.ContainsFunc(j.Slices, func(name string) bool { return d.isRefused(name) })
}

// isUnseen reports whether a job holds a slice that may live and cannot be listed now.
func (d *differ) isUnseen(want *schema.Job) bool {
	j := d.next.Jobs[want.Addr]
	return slices.ContainsFunc(j.Slices, func(name string) bool { return !d.known(d.specHeld(name, j)) && !d.isRefused(name) })
}

// isRefused reports whether a slice is not there since its place is shut.
func (d *differ) isRefused(name string) bool {
	s := d.next.Slices[name]
	if s == nil || s.Spec.Zone == "" || s.Seen || s.Failed == "" && !s.AskedAt.IsZero() {
		return false
	}
	_, listed := d.slices[name]
	return !listed && !d.shut(&s.Spec).none()
}

// moveOn takes jobs of a unit away from places where they cannot be, if others are
// open: those of a group that is to be together all at once, a job without such a
// group by itself. It reports whether the unit is on the move.
func (d *differ) moveOn(unit []*schema.Job) bool {
	var stranded []*schema.Job
	leaving := false
	for _, want := range unit {
		switch {
		case !d.placeable(want):
		case d.isLeaving(want.Addr):
			leaving = !d.leave(want.Addr) || leaving
		case d.isStranded(want):
			stranded = append(stranded, want)
		}
	}
	if leaving { // the next places are chosen when all are free
		for _, want := range unit {
			if d.placeable(want) {
				d.wait(want.Addr, underway(decisionText(state.CauseMoved)))
			}
		}
		return true
	}
	if len(stranded) == 0 {
		return false
	}
	group := d.groupOf(unit)
	if !group.SameRegion && !group.SameZone {
		for _, want := range stranded {
			if _, why := d.chooseZones([]*schema.Job{want}, nil); len(why) == 0 {
				d.leave(want.Addr)
			}
		}
		return false
	}
	return d.moveGroup(unit, stranded)
}

// moveGroup moves a group whole. Where others of it run, what is missing must have
// been refused again and again.
func (d *differ) moveGroup(unit, stranded []*schema.Job) bool {
	members := slices.DeleteFunc(slices.Clone(d.family(unit[0].Addr.GroupAddress())), func(want *schema.Job) bool {
		j := d.next.Jobs[want.Addr]
		return j == nil || j.Status.Ended()
	})
	still := slices.DeleteFunc(slices.Clone(members), func(want *schema.Job) bool { return slices.Contains(stranded, want) })
	if _, why := d.chooseZones(stranded, still); len(why) == 0 {
		for _, want := range stranded { // there is room beside the others
			d.leave(want.Addr)
		}
		return false
	}
	if _, why := d.chooseZones(members, nil); len(why) > 0 || slices.ContainsFunc(members, d.isUnseen) {
		return false
	}
	runs := slices.ContainsFunc(members, func(want *schema.Job) bool { return d.next.Jobs[want.Addr].Running() })
	if runs && !slices.ContainsFunc(stranded, d.refusedOften) {
		return false
	}
	settled := true
	for _, want := range members {
		settled = d.ended(want.Addr, decisionText(state.CauseMoved)) && settled
	}
	for _, want := range members {
		if !settled || !d.leave(want.Addr) {
			d.wait(want.Addr, underway(decisionText(state.CauseMoved)))
		}
	}
	return true
}

// refusedOften reports whether the place of a job's missing slice has failed again
// and again.
func (d *differ) refusedOften(want *schema.Job) bool {
	for _, name := range d.next.Jobs[want.Addr].Slices {
		s := d.next.Slices[name]
		if s == nil || !d.isRefused(name) {
			continue
		}
		for _, place := range [2]string{stockPlace(&s.Spec), quotaPlace(&s.Spec)} {
			if d.next.Weather[place].Failures >= refusals {
				return true
			}
		}
	}
	return false
}

// leave gives up a job's slices and reports whether it has none any more. Those that
// are going already do not come back where they are.
func (d *differ) leave(addr schema.Address) bool {
	for _, name := range d.next.Jobs[addr].Slices {
		if s := d.next.Slices[name]; s != nil && s.Spec.Owner == addr && !s.Terminating.IsZero() {
			d.terminate(name, decided(state.CauseMoved))
		}
	}
	return d.released(addr, decided(state.CauseMoved))
}

// isLeaving reports whether a job has begun to give up its slices.
func (d *differ) isLeaving(addr schema.Address) bool {
	return slices.ContainsFunc(d.next.Jobs[addr].Slices, func(name string) bool {
		s := d.next.Slices[name]
		return s != nil && s.Terminating.Decided() == state.CauseMoved
	})
}

// outside says which of a job's slices are in zones that it is not to be in, by
// what it declares of its own.
func (d *differ) outside(want *schema.Job, held []string) reason {
	if len(want.Resources.Zones) == 0 && len(want.Resources.Regions) == 0 {
		return reason{}
	}
	zones := d.zonesOf(&want.Resources)
	for _, name := range held {
		if s := d.next.Slices[name]; s != nil && s.Spec.Zone != "" && !slices.Contains(zones, s.Spec.Zone) {
			return because(WaitConstraint, fmt.Sprintf("slice %s is in %s", name, s.Spec.Zone))
		}
	}
	return reason{}
}

// withLabels are the labels of a provider's slices with those of one job over them.
func withLabels(live schema.CloudLive, labels map[string]string) schema.CloudLive {
	if len(labels) == 0 {
		return live
	}
	all := live.LabelMap()
	maps.Copy(all, labels)
	live.Labels = schema.JoinLabels(all)
	return live
}

// listedIn reports whether what is in a zone of a provider was listed: only then
// does a slice that is not listed not exist.
func (d *differ) listedIn(p schema.ProviderName, zone string) bool {
	inv, ok := d.obs.Inventories[p]
	if !ok {
		return false
	}
	if zone == "" {
		return len(inv.Unlisted) == 0
	}
	_, missing := inv.Unlisted[zone]
	return !missing
}

// stuckAfter is after how many calls for its end a slice counts as one that does
// not go away: about four minutes.
const stuckAfter = 8

// isStuck reports whether a slice in a zone does not go away. Whoever waits for its
// name would wait for as long; another name does as well.
func (d *differ) isStuck(name string) bool {
	st, listed := d.slices[name]
	s := d.next.Slices[name]
	return listed && s != nil && s.Spec.Zone != "" && st.Phase == schema.SliceDeleting && s.Deletions >= stuckAfter
}

// isRid reports whether a job goes on without a slice that does not go away: nothing
// runs there, and who deletes what nobody wants sees to it.
func (d *differ) isRid(j *state.Job, name string) bool {
	return d.isStuck(name) && !j.Running() && !j.Status.Ended() && !j.Stop && !d.leaving[j.Spec.Addr]
}

// insteadOf gives a job another slice for its i-th, which does not go away.
func (d *differ) insteadOf(want *schema.Job, i int) reason {
	j := d.next.Jobs[want.Addr]
	stuck := j.Slices[i]
	zone := d.next.Slices[stuck].Spec.Zone
	for index := 0; ; index++ {
		spec := d.ownSlice(want, index, zone)
		if d.isTaken(&spec) || d.isStuck(spec.Name) || slices.Contains(j.Slices, spec.Name) {
			continue
		}
		e := d.edit(want.Addr)
		e.Slices = slices.Clone(e.Slices)
		e.Slices[i] = d.record([]schema.SliceSpec{spec})[0]
		return underway(fmt.Sprintf("slice %s does not go away; %s takes its place", stuck, spec.Name))
	}
}
