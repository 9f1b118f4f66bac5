package lifecycle

import (
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// MoveOn takes jobs of a unit away from places where they cannot be, if others are
// open: those of a group that is to be together all at once, a job without such a
// group by itself. It reports whether the unit is on the move.
func (d *Jobs) MoveOn(unit []*schema.Job) bool {
	var stranded, free []*schema.Job
	leaving := false
	for _, want := range unit {
		if j := d.JobAt(want.Addr); j == nil || len(j.Slices) == 0 {
			continue // it is nowhere
		}
		switch {
		case !d.Placeable(want):
		case d.IsLeaving(want.Addr):
			leaving = !d.leave(want.Addr) || leaving
		case d.IsStranded(want):
			stranded = append(stranded, want)
		case d.MayChooseAgain(want):
			free = append(free, want)
		}
	}
	if leaving { // the next places are chosen when all are free
		for _, want := range unit {
			if d.Placeable(want) {
				d.Wait(want.Addr, plan.Underway(change.DecisionText(state.CauseMoved)))
			}
		}
		return true
	}
	// A unit of more slices than may try a place at a time would otherwise leave before they
	// are up, come back once none tries, and never run.
	group := d.GroupOf(unit)
	if len(stranded) == 0 {
		chooseAgain(d, &group, free)
	}
	if len(stranded) == 0 || d.AwaitsOwnProbes(unit, stranded) {
		return false
	}
	if !group.SameRegion && !group.SameZone {
		for _, want := range stranded {
			if _, why := d.ChoosePlaces([]*schema.Job{want}, nil); len(why) == 0 {
				d.leave(want.Addr)
			}
		}
		return false
	}
	return d.moveGroup(unit, stranded)
}

// chooseAgain has jobs give up what is left of slices none of which lives, where they may
// have better alternatives than those: together, where their group is to be.
func chooseAgain(d *Jobs, group *schema.JobGroup, free []*schema.Job) {
	if len(free) == 0 {
		return
	}
	together := [][]*schema.Job{free}
	var stay []*schema.Job
	if group.SameRegion || group.SameZone {
		stay = slices.DeleteFunc(slices.Clone(d.Family(group.Addr)), func(want *schema.Job) bool { return slices.Contains(free, want) })
	} else {
		together = slices.Collect(slices.Chunk(free, 1))
	}
	for _, jobs := range together {
		if d.Better(jobs, stay) == nil {
			continue
		}
		for _, want := range jobs {
			d.leave(want.Addr)
		}
	}
}

// moveGroup moves a group whole. Where others of it run, what is missing must have
// been refused again and again.
func (d *Jobs) moveGroup(unit, stranded []*schema.Job) bool {
	members := slices.DeleteFunc(slices.Clone(d.Family(unit[0].Addr.GroupAddress())), func(want *schema.Job) bool {
		j := d.Next.Jobs[want.Addr]
		return j == nil || j.Status.Ended()
	})
	still := slices.DeleteFunc(slices.Clone(members), func(want *schema.Job) bool { return slices.Contains(stranded, want) })
	if _, why := d.ChoosePlaces(stranded, still); len(why) == 0 {
		for _, want := range stranded { // there is room beside the others
			d.leave(want.Addr)
		}
		return false
	}
	if _, why := d.ChoosePlaces(members, nil); len(why) > 0 || slices.ContainsFunc(members, d.IsUnseen) {
		return false
	}
	runs := slices.ContainsFunc(members, func(want *schema.Job) bool { return d.Next.Jobs[want.Addr].Running() })
	if runs && !slices.ContainsFunc(stranded, d.IsOftenRejected) {
		return false
	}
	settled := true
	for _, want := range members {
		settled = d.stopAndReportStopped(want.Addr, change.DecisionText(state.CauseMoved)) && settled
	}
	for _, want := range members {
		if !settled || !d.leave(want.Addr) {
			d.Wait(want.Addr, plan.Underway(change.DecisionText(state.CauseMoved)))
		}
	}
	return true
}

// leave gives up a job's slices and reports whether it has none any more. Those that
// are going already do not come back where they are.
func (d *Jobs) leave(addr schema.Address) bool {
	for _, name := range d.Next.Jobs[addr].Slices {
		if s := d.Next.Slices[name]; s != nil && s.Spec.Owner == addr && !s.Terminating.IsZero() {
			d.terminate(name, change.Decided(state.CauseMoved))
		}
	}
	return d.Released(addr, change.Decided(state.CauseMoved))
}
