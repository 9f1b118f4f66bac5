package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Place gives capacity to jobs that have none, a group at a time, all or none,
// in the order of the queue, and brings up the slices of those that have.
func (d *Placer) Place(jobs []*schema.Job) {
	var fresh []*capacity.Unit
	for _, u := range d.units(jobs) {
		if !u.Fresh {
			u.Fresh = !d.placeUnit(u.Jobs)
		}
		switch {
		case !u.Fresh:
		case d.holdsForMoney(u):
		case d.isHeld(u): // it wants no capacity yet, and so has no place in the queue
			d.turn = u
			d.placeUnit(u.Jobs)
			d.turn = nil
		default:
			fresh = append(fresh, u)
		}
	}
	if len(fresh) == 0 {
		return
	}
	q, done := d.queueUp(fresh), 0
	actions, waits := len(d.Plan.Actions), len(d.Waits)
	for d.turn = q.next(); d.turn != nil; d.turn = q.next() {
		d.placeUnit(d.turn.Jobs)
		if done++; done == len(fresh)/8 && done > fewUnits {
			// Of a million jobs the lists would be copied again and again as they grow.
			d.Plan.Actions = slices.Grow(d.MutableActions(), 8*(len(d.Plan.Actions)-actions))
			d.Waits = slices.Grow(d.Waits, 8*(len(d.Waits)-waits))
			d.placed = slices.Grow(d.placed, 8*len(d.placed))
		}
	}
}

// fewUnits are so few that lists of what becomes of them may grow as they like.
const fewUnits = 100

// isHeld reports whether some of a unit without slices waits for what it depends on.
func (d *Placer) isHeld(u *capacity.Unit) bool {
	return slices.ContainsFunc(u.Jobs, func(want *schema.Job) bool {
		return len(want.DependsOn)+len(want.Uses) > 0 && d.Placeable(want) && len(d.JobAt(want.Addr).Slices) == 0 && !d.Unmet(want, u.Jobs).None()
	})
}

// placeUnit places the jobs of a group, or a single one: those that have no
// slices yet get them together or not at all. It reports false if that has to wait
// for the unit's turn.
func (d *Placer) placeUnit(unit []*schema.Job) bool {
	if d.MoveOn(unit) {
		return true
	}
	var fresh []*schema.Job
	for _, want := range unit {
		if want.Resources.Reservation != "" && d.Placeable(want) {
			d.Vacate(want)
		}
		if d.Placeable(want) && len(d.JobAt(want.Addr).Slices) == 0 {
			fresh = append(fresh, want)
		}
	}
	var blocked []plan.Reason
	var own []schema.SliceSpec
	if why := d.giveUpRejectedUnit(unit); !why.None() {
		for _, want := range fresh {
			d.Wait(want.Addr, why)
		}
		return true
	}
	if len(fresh) > 0 && d.turn == nil {
		return false // it has just given up what it had
	}
	if len(fresh) > 0 && d.HasReservedHosts() && d.runsOn(d.turn) {
		d.GiveReserved()
		defer d.TakeAllReserved()
	}
	if len(fresh) > 0 {
		if own, blocked = d.reasonsAgainst(fresh, unit); len(blocked) > 0 {
			d.Unclaim(fresh)
		}
	}
	for _, want := range fresh {
		if len(blocked) == 0 {
			if len(fresh) > 1 { // slices of another may have been recorded since
				own = nil
			}
			d.recordSlices(want, own)
			d.placed = append(d.placed, want.Addr)
		} else {
			d.Wait(want.Addr, blocked...)
		}
	}
	for _, want := range unit {
		if d.Placeable(want) && len(d.JobAt(want.Addr).Slices) > 0 {
			d.bringUpSlices(want)
		}
	}
	d.roomInQuota(unit)
	return true
}

// reasonsAgainst returns what keeps a unit's jobs from being given slices, for each place
// where they could be, and else chooses their zones. own are the slices that they would be
// given that are of no reservation.
func (d *Placer) reasonsAgainst(fresh, unit []*schema.Job) (own []schema.SliceSpec, reasons []plan.Reason) {
	for _, want := range fresh {
		if j := d.JobAt(want.Addr); j.RetryAt.After(d.Now) {
			return nil, []plan.Reason{d.retry(j)}
		}
		if why := d.Unmet(want, unit); !why.None() {
			d.Held = append(d.Held, want)
			return nil, []plan.Reason{why}
		}
	}
	stay := d.Family(unit[0].Addr.GroupAddress())
	stay = slices.DeleteFunc(slices.Clone(stay), func(want *schema.Job) bool { return slices.Contains(fresh, want) })
	places, reasons := d.PlacesFor(fresh, stay)
	if len(reasons) > 0 {
		return nil, reasons
	}
	d.Chosen = places
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
		if specs := d.FreshSlices(want); own == nil {
			own = specs
		} else {
			own = append(own, specs...)
		}
	}
	short, grown := d.Short(pooled)
	if !short.None() {
		reasons = append(reasons, short)
	}
	short, more := d.Fits(packed, pooled)
	if !short.None() {
		reasons = append(reasons, short)
	}
	asked := own
	if len(grown)+len(more) > 0 {
		asked = slices.Concat(own, grown, more)
	}
	all := &capacity.Wants{
		Claims: d.claims(fresh, asked, pooled), Hosts: d.Fittings(packed, pooled), Full: !short.None(),
		Grows: len(own) == 0 && len(asked) > 0,
	}
	if reasons = append(reasons, d.contend(d.turn, all)...); len(reasons) > 0 {
		return own, reasons
	}
	if short := d.Lacks(asked); !short.None() { // there will be room when what idles has gone
		d.Unchoose()
		d.Reserve(d.turn, all)
		reasons = append(reasons, d.DismissFor(asked, short))
		d.Idles = nil
	}
	return own, reasons
}

// retry says why a job is tried again only later.
func (d *Placer) retry(j *state.Job) plan.Reason {
	last := j.Last()
	switch {
	case last == nil || last.Outcome == "":
		return plan.Reason{Kind: plan.WaitRetry, Text: cmp.Or(j.Reason, change.DecisionText(state.CauseNotPlaced)), Until: j.RetryAt}
	case last.Reason == "":
		return plan.Reason{Kind: plan.WaitRetry, Text: fmt.Sprintf("attempt %d %s", last.Number, plan.OutcomeWords(last.Outcome)), Until: j.RetryAt}
	}
	return plan.Reason{Kind: plan.WaitRetry, Text: fmt.Sprintf("attempt %d %s: %s", last.Number, plan.OutcomeWords(last.Outcome), last.Reason), Until: j.RetryAt}
}

// recordSlices records which slices a job is to run on: specs, where they are known.
func (d *Placer) recordSlices(want *schema.Job, specs []schema.SliceSpec) {
	if want.Resources.Packed {
		names := d.SettlePacked(want)
		d.Edit(want.Addr).Slices = names
		d.Tally(want.Addr)
		return
	}
	if want.Resources.Reservation != "" {
		d.Edit(want.Addr).Slices = d.Draw(want)
		d.Tally(want.Addr)
		return
	}
	if specs == nil {
		specs = d.FreshSlices(want)
	}
	if slices.ContainsFunc(specs, func(spec schema.SliceSpec) bool { return d.IsKeptIdle(spec.Name) }) {
		d.Idles = nil
	}
	names := d.Record(specs)
	d.Edit(want.Addr).Slices = names
	d.NoteChoice(want)
	d.Tally(want.Addr)
}

// giveUpRejectedUnit gives up what a unit that never ran has been given, when some slice
// of it is rejected again and again, and returns that reason; none if there is no need.
func (d *Placer) giveUpRejectedUnit(unit []*schema.Job) plan.Reason {
	var holding []*schema.Job
	var refused string
	size, failed := 0, false
	for _, want := range unit {
		j := d.JobAt(want.Addr)
		size += want.Resources.Slices
		if j == nil || j.Attempt > 0 || len(j.Slices) == 0 || !d.Placeable(want) {
			continue
		}
		holding = append(holding, want)
		for _, name := range j.Slices {
			s := d.Next.Slices[name]
			_, listed := d.Listed[name]
			switch {
			case s == nil:
			case !listed && s.Tries >= capacity.Rejections:
				failed, refused = true, fmt.Sprintf("slice %s: %s", name, s.Error)
			case s.Terminating.Decided() == state.CauseNotPlaced:
				failed = true
			}
		}
	}
	if !failed || size == 1 {
		return plan.Reason{}
	}
	why := plan.Because(plan.WaitRetry, cmp.Or(refused, d.JobAt(holding[0].Addr).Reason, change.DecisionText(state.CauseNotPlaced)))
	for _, want := range holding {
		d.Wait(want.Addr, why)
		if d.Released(want.Addr, change.Decided(state.CauseNotPlaced)) {
			e := d.Edit(want.Addr)
			e.Streak++
			e.RetryAt = d.Now.Add(plan.Backoff(e.Streak + capacity.Rejections))
			d.WakeAt(e.RetryAt)
		}
	}
	return why
}

// bringUpSlices brings up the slices of a placed job and remembers it for start when
// they are. That goes on while the job waits for its next try.
func (d *Placer) bringUpSlices(want *schema.Job) {
	j := d.JobAt(want.Addr)
	var reasons []plan.Reason
	if j.RetryAt.After(d.Now) {
		reasons = append(reasons, d.retry(j))
	}
	if lifecycle.DrawsWhole(&want.Resources) {
		d.Redraw(want)
		j = d.JobAt(want.Addr)
	}
	for i, name := range slices.Clone(j.Slices) {
		if want.Resources.Reservation == "" && d.IsStuck(name) {
			reasons = append(reasons, d.InsteadOf(want, i))
			continue
		}
		spec, ok := d.specOf(want, i, name)
		if !ok { // its pool, or the stack, has no such slice any more: it gets another
			d.Edit(want.Addr).Slices = nil
			d.Tally(want.Addr)
			d.Wait(want.Addr, plan.Because(plan.WaitRoom, "slice "+name+" is not to be had any more"))
			return
		}
		if why := d.BringUp(spec); !why.None() {
			reasons = append(reasons, why)
		}
	}
	if len(reasons) > 0 {
		if d.IsStranded(want) { // as any other place where it could be
			if _, blocked, open := d.OpenPlace(want, capacity.Anywhere); !open {
				reasons = blocked
			}
		}
		d.Wait(want.Addr, reasons...)
		return
	}
	d.prepared[want.Addr] = true
}

// specOf is the spec of a job's i-th slice.
func (d *Placer) specOf(want *schema.Job, i int, name string) (schema.SliceSpec, bool) {
	if want.Resources.Packed {
		return d.PackedSpecOf(want, name)
	}
	if want.Resources.Reservation == "" {
		return d.HeldSlice(want, i, name)
	}
	if p := d.PoolOf(want.Resources.Reservation); p != nil {
		for _, spec := range p.Specs {
			if spec.Name == name {
				return spec, true
			}
		}
		if s := d.Next.Slices[name]; s != nil && d.IsApart(p.Of, s.Spec.Zone) {
			return schema.SliceSpec{}, false
		}
	}
	if s := d.Next.Slices[name]; s != nil {
		_, listed := d.Listed[name]
		return s.Spec, listed
	}
	return schema.SliceSpec{}, false
}
