package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// KeepPools keeps every reservation at its min, and deletes what it may not have: those
// of the highest priority first, where not all of them can be had. A slice that a
// job holds is that job's to bring up.
func (d *PoolUpkeep) KeepPools() {
	if len(d.Desired.Reservations) == 0 {
		return
	}
	recorded := d.PoolSlices()
	for _, r := range capacity.ByPriority(d.Desired.Reservations) {
		p := d.PoolOf(r.Addr.Scoped())
		keep := make(map[string]bool, len(p.Specs))
		var reasons []plan.Reason
		for _, spec := range p.Specs {
			keep[spec.Name] = true
			if why := d.keepUp(spec); !why.None() {
				reasons = append(reasons, why)
			}
		}
		if len(reasons) > 0 {
			d.Wait(r.Addr, reasons...)
		}
		d.shrink(r.Addr, recorded[r.Addr], keep)
		d.FindFree(p)
	}
}

// keepUp brings one slice of a pool up unless a job holds it.
func (d *PoolUpkeep) keepUp(spec schema.SliceSpec) plan.Reason {
	st, listed := d.Listed[spec.Name]
	if holder, held := d.HeldBy(spec.Name); held {
		if listed && st.Spec.Fixed() != spec.Fixed() {
			return plan.Underway(fmt.Sprintf("slice %s is still used by %s in its old shape", spec.Name, holder))
		}
		return plan.Reason{}
	}
	if !listed && d.Next.Slices[spec.Name] == nil {
		if short := d.Lacks([]schema.SliceSpec{spec}); !short.None() {
			return d.DismissFor([]schema.SliceSpec{spec}, short)
		}
	}
	return d.BringUp(spec)
}

// shrink deletes the recorded slices of a reservation that are neither to be
// kept nor in use, and reports whether any are left.
func (d *PoolUpkeep) shrink(addr schema.Address, recorded []string, keep map[string]bool) bool {
	var left []plan.Reason
	for _, name := range recorded {
		if keep[name] {
			continue
		}
		if holder, held := d.HeldBy(name); held {
			left = append(left, plan.Underway(fmt.Sprintf("slice %s is still used by %s", name, holder)))
			continue
		}
		s := d.Next.Slices[name]
		if st, listed := d.Listed[name]; listed {
			d.Remove(st, change.Decided(d.WhyNot(addr)))
			left = append(left, d.Deletion(name))
		} else if d.Known(&s.Spec) {
			d.DropSlice(name)
		} else {
			left = append(left, d.CannotAsk(&s.Spec))
		}
	}
	if len(left) > 0 {
		d.Wait(addr, left...)
	}
	return len(left) > 0
}

// settlePools notes which slices of reservations idle, and releases those that have
// for long enough and are more than what is held at least. By now every job has
// what it is given in this look.
func (d *PoolUpkeep) settlePools() {
	for i := range d.Desired.Reservations {
		p := d.PoolOf(d.Desired.Reservations[i].Addr.Scoped())
		if r, recorded := d.Next.Resources[p.Of.Addr]; recorded && r.Since.IsZero() && p.Of.TTL > 0 {
			r.Since = d.Now // there is no better record
			d.Mutable().Resources[p.Of.Addr] = r
		}
		held := 0
		for n := range p.Specs {
			_, is := d.HeldBy(p.Specs[n].Name)
			if is {
				held++
			}
			d.NoteIdle(p.Specs[n].Name, !is)
		}
		p.Bound = d.BoundsOf(p.Of, held)
		d.releaseIdle(p)
	}
	d.Plan.Expiries = d.Expiries()
}

// releaseIdle deletes what is too much of a pool and has idled for long enough,
// the highest index first.
func (d *PoolUpkeep) releaseIdle(p *snapshot.Pool) {
	timeout := time.Duration(cmp.Or(p.Of.IdleTimeout, schema.Duration(schema.DefaultIdleTimeout)))
	for i := len(p.Specs) - 1; i >= 0 && len(p.Specs) > p.Bound.Floor; i-- {
		name := p.Specs[i].Name
		s := d.Next.Slices[name]
		if s == nil || s.IdleSince.IsZero() {
			continue
		}
		if due := s.IdleSince.Add(timeout); d.Now.Before(due) {
			d.WakeAt(due)
			continue
		}
		d.releaseSlice(p, name, state.CauseIdle)
	}
}

// releaseSlice deletes a slice of a pool that no job holds.
func (d *PoolUpkeep) releaseSlice(p *snapshot.Pool, name string, why state.Cause) {
	if st, listed := d.Listed[name]; listed {
		d.Remove(st, change.Decided(why))
	} else if d.Known(&d.Next.Slices[name].Spec) {
		d.DropSlice(name)
	} else {
		return
	}
	p.Specs = slices.DeleteFunc(p.Specs, func(spec schema.SliceSpec) bool { return spec.Name == name })
	p.Free = slices.DeleteFunc(slices.Clone(p.Free), func(free string) bool { return free == name })
}
