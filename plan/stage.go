package plan

import (
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A job with create_before_destroy that is replaced while it runs gets its new
// slices first, beside the old ones, and runs on until all of them are up. Then
// its attempt is stopped; when every host has confirmed that, the new slices take
// the place of the old ones, which are deleted, and the next attempt starts. So
// there are never two attempts, and where there is room for both there is little
// time between them. The jobs of a group that are replaced go through it together.
//
// Staged are the slices that wait to take over. They are recorded and saved
// before they are asked for: whoever finds them later knows whose they are, and
// looks there for an attempt that was started and not recorded. They have names of
// their own, by the next indices that are free, and keep them.
//
// Where there is no room for both the old slices go first, as without it: when a
// provider's limit or a reservation is too small, or a quota is used up. A
// provider that is merely out of stock is waited for, since deleting what runs
// would not change that.

// staging is a job that may get new slices beside those it has.
type staging struct {
	want   *schema.Job
	change int // index among the plan's changes
}

// stages reports whether a job is to be replaced by way of staged slices, and
// nothing has been given up yet.
func (d *differ) stages(want *schema.Job) bool {
	j := d.next.Jobs[want.Addr]
	return want.Lifecycle.CreateBeforeDestroy && d.verbs[want.Addr] == VerbReplace &&
		j.Running() && j.Last().StopGeneration == 0 && !slices.ContainsFunc(j.Slices, d.isTerminating)
}

// stage moves those jobs on, a group at a time.
func (d *differ) stage() {
	for i, s := range d.staging {
		group := s.want.Addr.GroupAddress()
		if group.IsZero() {
			d.stageUnit(d.staging[i : i+1])
			continue
		}
		ofGroup := func(other staging) bool { return other.want.Addr.GroupAddress() == group }
		if slices.IndexFunc(d.staging, ofGroup) == i { // the first stands for all
			d.stageUnit(slices.DeleteFunc(slices.Clone(d.staging), func(other staging) bool { return !ofGroup(other) }))
		}
	}
}

// stageUnit gives jobs their new slices, all or none of them, brings these up, and
// has them take over once all are.
func (d *differ) stageUnit(unit []staging) {
	unit = slices.DeleteFunc(slices.Clone(unit), func(s staging) bool { return !d.stages(s.want) })
	if slices.ContainsFunc(unit, d.unseen) {
		return
	}
	var fresh []*schema.Job
	for _, s := range unit {
		if !d.fitsStaged(s.want) {
			d.unstage(s.want.Addr)
			fresh = append(fresh, s.want)
		}
	}
	short, clears := d.shortForBoth(unit, fresh)
	if !short.none() {
		for _, s := range unit {
			d.oldFirst(s, short, clears)
		}
		return
	}
	for _, want := range fresh {
		d.putStaged(want)
		d.tally(want.Addr)
	}
	up := true
	for _, s := range unit {
		d.because(s, "its new slices come first")
		up = d.bringUpStaged(s.want) && up
	}
	for _, s := range unit {
		if up {
			d.handOver(s.want)
		}
	}
}

// unseen reports whether a job has or wants slices of a provider that could not be
// asked. Which of them go first is then left open.
func (d *differ) unseen(s staging) bool {
	j := d.next.Jobs[s.want.Addr]
	asked := []*schema.SliceSpec{{Provider: s.want.Resources.Provider}}
	for _, name := range slices.Concat(j.Slices, j.Staged) {
		asked = append(asked, d.specHeld(name, j))
	}
	i := slices.IndexFunc(asked, func(spec *schema.SliceSpec) bool { return !d.known(spec) })
	if i >= 0 {
		d.wait(s.want.Addr, d.cannotAsk(asked[i]))
	}
	return i >= 0
}

// because adds to the reason that a change shows.
func (d *differ) because(s staging, why string) {
	c := &d.plan.Changes[s.change]
	if c.Reason != "" {
		why = c.Reason + "; " + why
	}
	c.Reason = why
}

// fitsStaged reports whether the slices that a job has staged are of the kind
// that it is to have. Those of another shape are made again, see bringUp.
func (d *differ) fitsStaged(want *schema.Job) bool {
	j, owner := d.next.Jobs[want.Addr], want.Addr
	if drawsWhole(&want.Resources) {
		owner = schema.ScopedAddress(schema.KindReservation, want.Resources.Reservation)
	}
	foreign := func(name string) bool {
		s := d.next.Slices[name]
		if want.Resources.Packed && !d.cannotStay(want, name).none() {
			return true
		}
		return s == nil || s.Spec.Owner != owner || d.isRefused(name) && d.stagedZone(want) != s.Spec.Zone
	}
	return len(j.Staged) == want.Resources.Slices && !slices.ContainsFunc(j.Staged, foreign)
}

// shortForBoth says why a unit cannot have its old and its new slices at the same
// time, nothing if it can; clears says that what is being deleted may yet make room.
func (d *differ) shortForBoth(unit []staging, fresh []*schema.Job) (short reason, clears bool) {
	for _, s := range unit {
		for _, name := range d.next.Jobs[s.want.Addr].Staged {
			if r := d.next.Slices[name]; r.OverQuota {
				return because(WaitQuota, "slice "+name+": "+r.Error), false
			}
		}
	}
	for _, c := range d.spaceClaims(fresh) {
		if c.need.exceeds(c.used, c.limit) {
			return c.short, false
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
	short, grown := d.short(pooled)
	if !short.none() {
		return short, false
	}
	short, more := d.fits(packed, pooled)
	if !short.none() {
		return short, false
	}
	asked := slices.Concat(own, grown, more)
	if short := d.lacks(asked); !short.none() {
		return short, d.dismissFor(asked, short).underway || d.clears()
	}
	return reason{}, false
}

// clears reports whether slices are going.
func (d *differ) clears() bool {
	for _, s := range d.next.Slices {
		if !s.Terminating.IsZero() {
			return true
		}
	}
	return false
}

// oldFirst replaces a job without staging, or waits for what makes room.
func (d *differ) oldFirst(s staging, short reason, clears bool) {
	addr := s.want.Addr
	if clears {
		d.wait(addr, because(WaitLimit, "its new slices come first, when there is room: "+short.text))
		return
	}
	why := "its old slices go first, since there is no room for both: " + short.text
	d.because(s, why)
	d.wait(addr, because(WaitLimit, why))
	d.unstage(addr)
	if d.released(addr, replaced(d.next.Jobs[addr])) {
		d.renew(s.want)
	}
}

// stagedSlices are the specs of the slices that are made beside those that a job
// has: the first ones named after it whose names nobody else bears.
func (d *differ) stagedSlices(want *schema.Job) []schema.SliceSpec {
	held := d.next.Jobs[want.Addr].Slices
	specs := make([]schema.SliceSpec, 0, want.Resources.Slices)
	for index := 0; len(specs) < want.Resources.Slices; index++ {
		if spec := d.ownSlice(want, index, d.stagedZone(want)); !d.isTaken(&spec) && !slices.Contains(held, spec.Name) {
			specs = append(specs, spec)
		}
	}
	return specs
}

// stagedZone is where the slices go that are made beside those that a job has: with
// its group, and where capacity is to be had.
func (d *differ) stagedZone(want *schema.Job) string {
	var stay []*schema.Job
	if group := want.Addr.GroupAddress(); !group.IsZero() {
		stay = slices.DeleteFunc(slices.Clone(d.family(group)), func(other *schema.Job) bool { return other.Addr == want.Addr })
	}
	if chosen, _ := d.chooseZones([]*schema.Job{want}, stay); chosen != nil {
		return chosen[want.Addr]
	}
	zones := d.zonesOf(&want.Resources)
	if held := d.zoneHeld(want.Addr); slices.Contains(zones, held) || len(zones) == 0 {
		return held
	}
	return zones[0]
}

// putStaged records which slices are to take over.
func (d *differ) putStaged(want *schema.Job) {
	if want.Resources.Packed {
		names := d.settleGuests(want)
		d.edit(want.Addr).Staged = names
		return
	}
	if want.Resources.Reservation != "" {
		d.edit(want.Addr).Staged = d.draw(want)
		return
	}
	specs := d.stagedSlices(want)
	d.edit(want.Addr).Staged = d.record(specs)
}

// record puts slices into the state that are not there, and returns their names.
func (d *differ) record(specs []schema.SliceSpec) []string {
	names := make([]string, 0, len(specs))
	for _, spec := range specs {
		names = append(names, spec.Name)
		if st, listed := d.slices[spec.Name]; listed {
			d.recordOf(st)
		} else if d.next.Slices[spec.Name] == nil {
			d.putSlice(state.Slice{Spec: spec})
		}
		d.takeUp(&spec)
	}
	return names
}

// bringUpStaged brings up the slices that are to take over, and reports whether
// all of them are.
func (d *differ) bringUpStaged(want *schema.Job) bool {
	var reasons []reason
	for i, name := range d.next.Jobs[want.Addr].Staged {
		spec, ok := d.specOf(want, i, name)
		if !ok { // its pool has no such slice any more: it gets another
			d.unstage(want.Addr)
			d.wait(want.Addr, because(WaitRoom, "slice "+name+" is not to be had any more"))
			return false
		}
		if why := d.bringUp(spec); !why.none() {
			reasons = append(reasons, why)
		}
	}
	d.wait(want.Addr, reasons...)
	return len(reasons) == 0
}

// isStaged reports whether a slice waits to take over from others of its owner.
func (d *differ) isStaged(spec *schema.SliceSpec) bool {
	j := d.next.Jobs[spec.Owner]
	return j != nil && slices.Contains(j.Staged, spec.Name)
}

// handOver ends a job's attempt and, when that is confirmed, lets the staged
// slices take over.
func (d *differ) handOver(want *schema.Job) {
	addr := want.Addr
	if !d.ended(addr, replaced(d.next.Jobs[addr]).Text) {
		return
	}
	j := d.next.Jobs[addr]
	if drawsWhole(&j.Spec.Resources) {
		if left := d.giveBack(j); len(left) > 0 {
			d.wait(addr, left...)
			return
		}
	}
	d.outdo(j, j.Staged)
	e := d.renew(want)
	e.Slices, e.Staged = e.Staged, nil
	d.tally(addr)
}

// outdo gives up the slices of a job in the place of which it has others.
func (d *differ) outdo(j *state.Job, by []string) {
	for _, name := range j.Slices {
		if s := d.next.Slices[name]; s != nil && s.Spec.Owner == j.Spec.Addr && !slices.Contains(by, name) {
			d.terminate(name, state.Termination{Cause: state.CauseReplaced, Text: "it was replaced"})
		}
	}
}

// unstage gives up what waited to take over.
func (d *differ) unstage(addr schema.Address) {
	j := d.next.Jobs[addr]
	if len(j.Staged) == 0 {
		return
	}
	for _, name := range j.Staged {
		if s := d.next.Slices[name]; s != nil && s.Spec.Owner == addr {
			d.terminate(name, decided(state.CauseUnneeded))
		}
	}
	d.edit(addr).Staged = nil
	d.tally(addr)
}
