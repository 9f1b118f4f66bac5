package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// pool is a declared reservation while a Diff looks at it.
type pool struct {
	specs []schema.SliceSpec // those to keep, in index order
	free  []string           // those that nobody holds, the ones that are up first
	users string             // who holds the others, "" before it was asked
}

// poolOf returns a declared reservation's pool, nil if there is none.
func (d *differ) poolOf(name string) *pool {
	if d.pooled == nil {
		d.pooled = make(map[string]*pool, len(d.desired.Reservations))
		var recorded map[schema.Address][]string
		if len(d.desired.Reservations) > 0 {
			recorded = d.poolSlices()
		}
		for i := range d.desired.Reservations {
			r := &d.desired.Reservations[i]
			d.pooled[r.Addr.Scoped()] = &pool{specs: d.poolSpecs(r, recorded[r.Addr])}
		}
	}
	return d.pooled[name]
}

// recordHolders notes which jobs hold slices of reservations.
func (d *differ) recordHolders() {
	d.holders = map[string]schema.Address{}
	pools := len(d.desired.Reservations) > 0
	for _, r := range d.doc.Resources {
		pools = pools || r.Reservation != nil
	}
	if !pools {
		return
	}
	for addr, j := range d.doc.Jobs {
		if j.Spec.Resources.Reservation == "" && len(j.Staged) == 0 {
			continue
		}
		for _, name := range slices.Concat(j.Slices, j.Staged) {
			d.holders[name] = addr
		}
	}
}

// heldBy is who uses a slice of a reservation now.
func (d *differ) heldBy(name string) (schema.Address, bool) {
	addr, ok := d.holders[name]
	if !ok {
		return addr, false
	}
	j := d.next.Jobs[addr]
	return addr, j != nil && (slices.Contains(j.Slices, name) || slices.Contains(j.Staged, name))
}

// pools keeps every reservation at its min, and deletes what it has too much.
// A slice that a job holds is that job's to bring up.
func (d *differ) pools() {
	if len(d.desired.Reservations) == 0 {
		return
	}
	recorded := d.poolSlices()
	for i := range d.desired.Reservations {
		r := &d.desired.Reservations[i]
		p := d.poolOf(r.Addr.Scoped())
		keep := make(map[string]bool, len(p.specs))
		var reasons []reason
		for _, spec := range p.specs {
			keep[spec.Name] = true
			if why := d.keepUp(spec); !why.none() {
				reasons = append(reasons, why)
			}
		}
		if len(reasons) > 0 {
			d.wait(r.Addr, reasons...)
		}
		d.shrink(r.Addr, recorded[r.Addr], keep)
		d.findFree(p)
	}
}

// keepUp brings one slice of a pool up unless a job holds it.
func (d *differ) keepUp(spec schema.SliceSpec) reason {
	st, listed := d.slices[spec.Name]
	if holder, held := d.heldBy(spec.Name); held {
		if listed && st.Spec.Fixed() != spec.Fixed() {
			return underway(fmt.Sprintf("slice %s is still used by %s in its old shape", spec.Name, holder))
		}
		return reason{}
	}
	if !listed && d.next.Slices[spec.Name] == nil {
		if short := d.lacks([]schema.SliceSpec{spec}); short != "" {
			return because(short)
		}
	}
	return d.bringUp(spec)
}

// findFree lists the slices that jobs may draw. Those that are up come first,
// so that no job waits for a slice while another one idles.
func (d *differ) findFree(p *pool) {
	var later []string
	for _, spec := range p.specs {
		s := d.next.Slices[spec.Name]
		_, held := d.heldBy(spec.Name)
		_, listed := d.slices[spec.Name]
		switch {
		case held || s == nil || !listed && s.Tries >= refusals: // cannot be had
		case listed && !s.BornAt.IsZero() && s.Doomed == "":
			p.free = append(p.free, spec.Name)
		default:
			later = append(later, spec.Name)
		}
	}
	p.free = append(p.free, later...)
}

// short says what the reservations lack for a unit of jobs, "" when nothing.
func (d *differ) short(unit []*schema.Job) string {
	if len(unit) == 0 {
		return ""
	}
	need := map[string]int{}
	for _, want := range unit {
		need[want.Resources.Reservation] += want.Resources.Slices
	}
	for _, name := range slices.Sorted(maps.Keys(need)) {
		p := d.poolOf(name)
		switch {
		case p == nil:
			return fmt.Sprintf("%s is not there", schema.ScopedAddress(schema.KindReservation, name))
		case need[name] > len(p.free):
			return fmt.Sprintf("%s: needs %d of its %d slices at once, %d free%s",
				schema.ScopedAddress(schema.KindReservation, name), need[name], len(p.specs), len(p.free), d.poolUsers(p))
		}
	}
	return ""
}

// draw gives a job slices of its reservation; [differ.short] found enough.
func (d *differ) draw(want *schema.Job) []string {
	p := d.poolOf(want.Resources.Reservation)
	drawn := slices.Clone(p.free[:want.Resources.Slices])
	p.free, p.users = p.free[want.Resources.Slices:], ""
	for _, name := range drawn {
		d.holders[name] = want.Addr
	}
	return drawn
}

func (d *differ) poolUsers(p *pool) string {
	if p.users != "" {
		return p.users
	}
	var users []string
	for _, spec := range p.specs {
		if addr, held := d.heldBy(spec.Name); held && !slices.Contains(users, addr.String()) {
			users = append(users, addr.String())
		}
	}
	if len(users) > 0 {
		p.users = "; used by " + strings.Join(users, ", ")
	}
	return p.users
}

// poolSlices are the recorded slices of each reservation, sorted by name.
func (d *differ) poolSlices() map[schema.Address][]string {
	recorded := map[schema.Address][]string{}
	for name, s := range d.next.Slices {
		if s.Spec.Owner.Kind == schema.KindReservation {
			recorded[s.Spec.Owner] = append(recorded[s.Spec.Owner], name)
		}
	}
	for _, names := range recorded {
		slices.Sort(names)
	}
	return recorded
}

// shrink deletes the recorded slices of a reservation that are neither to be
// kept nor in use, and reports whether any are left.
func (d *differ) shrink(addr schema.Address, recorded []string, keep map[string]bool) bool {
	var left []reason
	for _, name := range recorded {
		if keep[name] {
			continue
		}
		if holder, held := d.heldBy(name); held {
			left = append(left, underway(fmt.Sprintf("slice %s is still used by %s", name, holder)))
			continue
		}
		s := d.next.Slices[name]
		if st, listed := d.slices[name]; listed {
			d.remove(st, "it is not declared any more")
			left = append(left, d.deletion(name))
		} else if d.known(&s.Spec) {
			d.dropSlice(name)
		} else {
			left = append(left, d.cannotAsk(&s.Spec))
		}
	}
	if len(left) > 0 {
		d.wait(addr, left...)
	}
	return len(left) > 0
}
