package schedule

import (
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/schema"
)

// Stage moves those jobs on, a group at a time.
func (d *Placer) Stage() {
	for i, s := range d.Staging {
		group := s.Want.Addr.GroupAddress()
		if group.IsZero() {
			d.stageUnit(d.Staging[i : i+1])
			continue
		}
		ofGroup := func(other lifecycle.Staging) bool { return other.Want.Addr.GroupAddress() == group }
		if slices.IndexFunc(d.Staging, ofGroup) == i { // the first stands for all
			d.stageUnit(slices.DeleteFunc(slices.Clone(d.Staging), func(other lifecycle.Staging) bool { return !ofGroup(other) }))
		}
	}
}

// stageUnit gives jobs their new slices, all or none of them, brings these up, and
// has them take over once all are.
func (d *Placer) stageUnit(unit []lifecycle.Staging) {
	unit = slices.DeleteFunc(slices.Clone(unit), func(s lifecycle.Staging) bool { return !d.Stages(s.Want) })
	if slices.ContainsFunc(unit, d.unseen) {
		return
	}
	var fresh []*schema.Job
	for _, s := range unit {
		if !d.fitsStaged(s.Want) {
			d.Unstage(s.Want.Addr)
			fresh = append(fresh, s.Want)
		}
	}
	short, clears := d.shortForBoth(unit, fresh)
	if !short.None() {
		for _, s := range unit {
			d.oldFirst(s, short, clears)
		}
		return
	}
	for _, want := range fresh {
		d.putStaged(want)
		d.Tally(want.Addr)
	}
	up := true
	for _, s := range unit {
		d.because(s, "its new slices come first")
		up = d.bringUpStaged(s.Want) && up
	}
	for _, s := range unit {
		if up {
			d.HandOver(s.Want)
		}
	}
}

// unseen reports whether a job has or wants slices of a provider that could not be
// asked. Which of them go first is then left open.
func (d *Placer) unseen(s lifecycle.Staging) bool {
	j := d.Next.Jobs[s.Want.Addr]
	asked := []*schema.SliceSpec{{Provider: s.Want.Resources.Provider}}
	for _, name := range slices.Concat(j.Slices, j.Staged) {
		asked = append(asked, d.SpecHeld(name, j))
	}
	i := slices.IndexFunc(asked, func(spec *schema.SliceSpec) bool { return !d.Known(spec) })
	if i >= 0 {
		d.Wait(s.Want.Addr, d.CannotAsk(asked[i]))
	}
	return i >= 0
}

// because adds to the reason that a change shows.
func (d *Placer) because(s lifecycle.Staging, why string) {
	c := &d.MutableChanges()[s.Change]
	if c.Reason != "" {
		why = c.Reason + "; " + why
	}
	c.Reason = why
}

// fitsStaged reports whether the slices that a job has staged are of the kind
// that it is to have. Those of another shape are made again, see bringUp.
func (d *Placer) fitsStaged(want *schema.Job) bool {
	j, owner := d.Next.Jobs[want.Addr], want.Addr
	whole := lifecycle.DrawsWhole(&want.Resources)
	if whole {
		owner = schema.ScopedAddress(schema.KindReservation, want.Resources.Reservation)
	}
	foreign := func(name string) bool {
		s := d.Next.Slices[name]
		if want.Resources.Packed && !d.CannotStay(want, name).None() || whole && d.IsOthers(name, want.Addr) {
			return true
		}
		return s == nil || s.Spec.Owner != owner || d.IsRejected(name) && d.stagedPlace(want) != placeOf(&s.Spec)
	}
	return len(j.Staged) == want.Resources.Slices && capacity.SuitsStaged(d.Next, want) && !slices.ContainsFunc(j.Staged, foreign)
}

// shortForBoth says why a unit cannot have its old and its new slices at the same
// time, nothing if it can; clears says that what is being deleted may yet make room.
func (d *Placer) shortForBoth(unit []lifecycle.Staging, fresh []*schema.Job) (short plan.Reason, clears bool) {
	for _, s := range unit {
		for _, name := range d.Next.Jobs[s.Want.Addr].Staged {
			if r := d.Next.Slices[name]; r.OverQuota {
				return plan.Because(plan.WaitQuota, "slice "+name+": "+r.Error), false
			}
		}
	}
	for _, c := range d.spaceClaims(fresh) {
		if c.Need.Exceeds(c.Used, c.Limit) {
			return c.Short, false
		}
	}
	var own []schema.SliceSpec
	var pooled, packed []*schema.Job
	for _, want := range fresh {
		if want.Resources.Packed {
			packed = append(packed, want)
			continue
		}
		if want.Resources.Reservation != "" {
			pooled = append(pooled, want)
			continue
		}
		own = append(own, d.stagedSlices(want)...)
	}
	short, grown := d.Short(pooled)
	if !short.None() {
		return short, false
	}
	short, more := d.Fits(packed, pooled)
	if !short.None() {
		return short, false
	}
	asked := slices.Concat(own, grown, more)
	if short := d.Lacks(asked); !short.None() {
		return short, d.DismissFor(asked, short).Underway || d.clears()
	}
	return plan.Reason{}, false
}

// clears reports whether slices are going.
func (d *Placer) clears() bool {
	for _, s := range d.Next.Slices {
		if !s.Terminating.IsZero() {
			return true
		}
	}
	return false
}

// oldFirst replaces a job without staging, or waits for what makes room.
func (d *Placer) oldFirst(s lifecycle.Staging, short plan.Reason, clears bool) {
	addr := s.Want.Addr
	if clears {
		d.Wait(addr, plan.Because(plan.WaitLimit, "its new slices come first, when there is room: "+short.Text))
		return
	}
	why := "its old slices go first, since there is no room for both: " + short.Text
	d.because(s, why)
	d.Wait(addr, plan.Because(plan.WaitLimit, why))
	d.Unstage(addr)
	if d.Released(addr, change.Replaced(d.Next.Jobs[addr])) {
		d.Renew(s.Want)
	}
}

// stagedSlices are the specs of the slices that are made beside those that a job
// has: the first ones named after it whose names no other slice bears.
func (d *Placer) stagedSlices(want *schema.Job) []schema.SliceSpec {
	held := d.Next.Jobs[want.Addr].Slices
	specs, place := make([]schema.SliceSpec, 0, want.Resources.Slices), d.stagedPlace(want)
	as := want.As(place.Accelerator)
	for index := 0; len(specs) < want.Resources.Slices; index++ {
		if spec := d.OwnSlice(as, index, place.Zone); !d.IsTaken(&spec) && !slices.Contains(held, spec.Name) {
			specs = append(specs, spec)
		}
	}
	return specs
}

// stagedPlace is where the slices go that are made beside those that a job has: with
// its group, and where capacity is to be had.
func (d *Placer) stagedPlace(want *schema.Job) capacity.Place {
	var stay []*schema.Job
	if group := want.Addr.GroupAddress(); !group.IsZero() {
		stay = slices.DeleteFunc(slices.Clone(d.Family(group)), func(other *schema.Job) bool { return other.Addr == want.Addr })
	}
	if chosen, _ := d.ChoosePlaces([]*schema.Job{want}, stay); chosen != nil {
		return chosen[want.Addr]
	}
	as := d.Running(want)
	place := capacity.Place{Zone: d.ZoneHeld(want.Addr), Accelerator: as.Resources.Accelerator()}
	if zones := d.ZonesOf(&as.Resources); len(zones) > 0 && !slices.Contains(zones, place.Zone) {
		place.Zone = zones[0]
	}
	return place
}

// placeOf is where a slice is.
func placeOf(spec *schema.SliceSpec) capacity.Place {
	return capacity.Place{Zone: spec.Zone, Accelerator: spec.Accelerator()}
}

// putStaged records which slices are to take over.
func (d *Placer) putStaged(want *schema.Job) {
	if want.Resources.Packed {
		names := d.SettlePacked(want)
		d.Edit(want.Addr).Staged = names
		return
	}
	if want.Resources.Reservation != "" {
		d.Edit(want.Addr).Staged = d.Draw(want)
		return
	}
	specs := d.stagedSlices(want)
	d.Edit(want.Addr).Staged = d.Record(specs)
}

// bringUpStaged brings up the slices that are to take over, and reports whether
// all of them are.
func (d *Placer) bringUpStaged(want *schema.Job) bool {
	var reasons []plan.Reason
	for i, name := range d.Next.Jobs[want.Addr].Staged {
		spec, ok := d.specOf(want, i, name)
		if !ok { // its pool has no such slice any more: it gets another
			d.Unstage(want.Addr)
			d.Wait(want.Addr, plan.Because(plan.WaitRoom, "slice "+name+" is not to be had any more"))
			return false
		}
		if why := d.BringUp(spec); !why.None() {
			reasons = append(reasons, why)
		}
	}
	d.Wait(want.Addr, reasons...)
	return len(reasons) == 0
}
