package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// place gives capacity to jobs that have none, a group at a time, all or none,
// in the order of the queue, and brings up the slices of those that have.
func (d *differ) place(jobs []*schema.Job) {
	var fresh []*unit
	for _, u := range d.units(jobs) {
		if !u.fresh {
			u.fresh = !d.placeUnit(u.jobs)
		}
		switch {
		case !u.fresh:
		case d.isHeld(u): // it wants no capacity yet, and so has no place in the queue
			d.turn = u
			d.placeUnit(u.jobs)
			d.turn = nil
		default:
			fresh = append(fresh, u)
		}
	}
	if len(fresh) == 0 {
		return
	}
	q := d.queueUp(fresh)
	for d.turn = q.next(); d.turn != nil; d.turn = q.next() {
		d.placeUnit(d.turn.jobs)
	}
}

// isHeld reports whether some of a unit without slices waits for what it depends on.
func (d *differ) isHeld(u *unit) bool {
	return slices.ContainsFunc(u.jobs, func(want *schema.Job) bool {
		return d.placeable(want) && len(d.next.Jobs[want.Addr].Slices) == 0 && !d.unmet(want, u.jobs).none()
	})
}

// placeable reports whether a job waits for an attempt to start.
func (d *differ) placeable(want *schema.Job) bool {
	j := d.next.Jobs[want.Addr]
	if j == nil || j.Running() || j.Status.Ended() || j.Stop || j.Replace || !j.YieldsTo.IsZero() {
		return false
	}
	_, changing := d.verbs[want.Addr]
	return !changing || equalJobs(j.Spec, want) && !triggered(want, j)
}

// placeUnit places the jobs of a group, or a single one: those that have no
// slices yet get them together or not at all. It reports false if that has to wait
// for the unit's turn.
func (d *differ) placeUnit(unit []*schema.Job) bool {
	if d.moveOn(unit) {
		return true
	}
	var fresh []*schema.Job
	for _, want := range unit {
		if want.Resources.Packed && d.placeable(want) {
			d.vacate(want)
		}
		if d.placeable(want) && len(d.next.Jobs[want.Addr].Slices) == 0 {
			fresh = append(fresh, want)
		}
	}
	var blocked []reason
	if why := d.backOut(unit); !why.none() {
		for _, want := range fresh {
			d.wait(want.Addr, why)
		}
		return true
	}
	if len(fresh) > 0 && d.turn == nil {
		return false // it has just given up what it had
	}
	if len(fresh) > 0 && d.keepsRooms() && d.runsOn(d.turn) {
		d.giveKept()
		defer d.takeAllKept()
	}
	if len(fresh) > 0 {
		if blocked = d.blocked(fresh, unit); len(blocked) > 0 {
			d.unclaim(fresh)
		}
	}
	for _, want := range fresh {
		if len(blocked) == 0 {
			d.settleIn(want)
		} else {
			d.wait(want.Addr, blocked...)
		}
	}
	for _, want := range unit {
		if d.placeable(want) && len(d.next.Jobs[want.Addr].Slices) > 0 {
			d.prepare(want)
		}
	}
	d.roomInQuota(unit)
	return true
}

// blocked says what keeps a unit's jobs from being given slices, for each place
// where they could be, and else chooses their zones.
func (d *differ) blocked(fresh, unit []*schema.Job) []reason {
	for _, want := range fresh {
		if j := d.next.Jobs[want.Addr]; j.RetryAt.After(d.now) {
			return []reason{d.retry(j)}
		}
		if why := d.unmet(want, unit); !why.none() {
			d.held = append(d.held, want)
			return []reason{why}
		}
	}
	stay := d.family(unit[0].Addr.GroupAddress())
	stay = slices.DeleteFunc(slices.Clone(stay), func(want *schema.Job) bool { return slices.Contains(fresh, want) })
	zones, reasons := d.placesFor(fresh, stay)
	if len(reasons) > 0 {
		return reasons
	}
	d.zones = zones
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
		own = append(own, d.freshSlices(want)...)
	}
	short, grown := d.short(pooled)
	if !short.none() {
		reasons = append(reasons, short)
	}
	short, more := d.fits(packed, pooled)
	if !short.none() {
		reasons = append(reasons, short)
	}
	asked := slices.Concat(own, grown, more)
	all := &wants{
		claims: d.claims(fresh, asked, pooled), hosts: d.fittings(packed, pooled), full: !short.none(),
		grows: len(own) == 0 && len(asked) > 0,
	}
	if reasons = append(reasons, d.contend(d.turn, all)...); len(reasons) > 0 {
		return reasons
	}
	if short := d.lacks(asked); !short.none() { // there will be room when what idles has gone
		d.unchoose()
		d.keep(d.turn, all)
		reasons = append(reasons, d.dismissFor(asked, short))
		d.idles = nil
	}
	return reasons
}

// retry says why a job is tried again only later.
func (d *differ) retry(j *state.Job) reason {
	last := j.Last()
	switch {
	case last == nil || last.Outcome == "":
		return reason{kind: WaitRetry, text: cmp.Or(j.Reason, decisionText(state.CauseNotPlaced)), until: j.RetryAt}
	case last.Reason == "":
		return reason{kind: WaitRetry, text: fmt.Sprintf("attempt %d %s", last.Number, outcomeWords(last.Outcome)), until: j.RetryAt}
	}
	return reason{kind: WaitRetry, text: fmt.Sprintf("attempt %d %s: %s", last.Number, outcomeWords(last.Outcome), last.Reason), until: j.RetryAt}
}

// settleIn records which slices a job is to run on.
func (d *differ) settleIn(want *schema.Job) {
	if want.Resources.Packed {
		names := d.settleGuests(want)
		d.edit(want.Addr).Slices = names
		d.tally(want.Addr)
		return
	}
	if want.Resources.Reservation != "" {
		d.edit(want.Addr).Slices = d.draw(want)
		d.tally(want.Addr)
		return
	}
	specs := d.freshSlices(want)
	if slices.ContainsFunc(specs, func(spec schema.SliceSpec) bool { return d.isKeptIdle(spec.Name) }) {
		d.idles = nil
	}
	names := d.record(specs)
	d.edit(want.Addr).Slices = names
	d.tally(want.Addr)
}

// refusals is how often a slice may be refused in a row before what waits for
// it lets go of the rest, so that two groups cannot hold half of a place each.
const refusals = 3

// backOut gives up what a unit that never ran has been given, when some slice
// of it is refused again and again, and says so; nothing if there is no need.
func (d *differ) backOut(unit []*schema.Job) reason {
	var holding []*schema.Job
	var refused string
	size, failed := 0, false
	for _, want := range unit {
		j := d.next.Jobs[want.Addr]
		size += want.Resources.Slices
		if j == nil || j.Attempt > 0 || len(j.Slices) == 0 || !d.placeable(want) {
			continue
		}
		holding = append(holding, want)
		for _, name := range j.Slices {
			s := d.next.Slices[name]
			_, listed := d.slices[name]
			switch {
			case s == nil:
			case !listed && s.Tries >= refusals:
				failed, refused = true, fmt.Sprintf("slice %s: %s", name, s.Error)
			case s.Terminating.Decided() == state.CauseNotPlaced:
				failed = true
			}
		}
	}
	if !failed || size == 1 {
		return reason{}
	}
	why := because(WaitRetry, cmp.Or(refused, d.next.Jobs[holding[0].Addr].Reason, decisionText(state.CauseNotPlaced)))
	for _, want := range holding {
		d.wait(want.Addr, why)
		if d.released(want.Addr, decided(state.CauseNotPlaced)) {
			e := d.edit(want.Addr)
			e.Streak++
			e.RetryAt = d.now.Add(Backoff(e.Streak + refusals))
			d.wakeAt(e.RetryAt)
		}
	}
	return why
}

// prepare brings up the slices of a placed job and remembers it for start when
// they are. That goes on while the job waits for its next try.
func (d *differ) prepare(want *schema.Job) {
	j := d.next.Jobs[want.Addr]
	var reasons []reason
	if j.RetryAt.After(d.now) {
		reasons = append(reasons, d.retry(j))
	}
	if drawsWhole(&want.Resources) {
		d.redraw(want)
		j = d.next.Jobs[want.Addr]
	}
	for i, name := range slices.Clone(j.Slices) {
		if want.Resources.Reservation == "" && d.isStuck(name) {
			reasons = append(reasons, d.insteadOf(want, i))
			continue
		}
		spec, ok := d.specOf(want, i, name)
		if !ok { // its pool, or the stack, has no such slice any more: it gets another
			d.edit(want.Addr).Slices = nil
			d.tally(want.Addr)
			d.wait(want.Addr, because(WaitRoom, "slice "+name+" is not to be had any more"))
			return
		}
		if why := d.bringUp(spec); !why.none() {
			reasons = append(reasons, why)
		}
	}
	if len(reasons) > 0 {
		if d.isStranded(want) { // as any other place where it could be
			if _, shut, open := d.openZone(want, anywhere); !open {
				reasons = shut
			}
		}
		d.wait(want.Addr, reasons...)
		return
	}
	d.prepared[want.Addr] = true
}

// specOf is the spec of a job's i-th slice.
func (d *differ) specOf(want *schema.Job, i int, name string) (schema.SliceSpec, bool) {
	if want.Resources.Packed {
		return d.guestSpecOf(want, name)
	}
	if want.Resources.Reservation == "" {
		return d.heldSlice(want, i, name)
	}
	if p := d.poolOf(want.Resources.Reservation); p != nil {
		for _, spec := range p.specs {
			if spec.Name == name {
				return spec, true
			}
		}
	}
	if s := d.next.Slices[name]; s != nil {
		_, listed := d.slices[name]
		return s.Spec, listed
	}
	return schema.SliceSpec{}, false
}
