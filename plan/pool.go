package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/schema"
)

// A reservation holds as many slices as its min says, those that jobs hold among
// them. It grows when a job that waits for it can be given what it needs by that,
// never beyond its max, in which everything counts that is there, is asked for, or
// is going: the job is given the new slices at once and brings them up. What is
// more than the min and idles for long enough is released, the highest index first.

// pool is a declared reservation while a Diff looks at it.
type pool struct {
	of    *schema.Reservation
	specs []schema.SliceSpec // those to keep, in index order
	free  []string           // those that nobody holds, the ones that are up first
	bound bounds
	room  int          // how many more there may be
	used  map[int]bool // indices that are not to be given to new slices
	users string       // who holds the others, "" before it was asked

	rooms   []*room   // see roomsOf
	roomsOf int       // how many specs there were then
	full    []fullFor // for what no room is left
	keeps   keptRooms // for those who are ahead
	stays   bool      // its rooms know who stays, see findStays
	// Who these are, by unit.
	occupants map[schema.Address]*occupant
	tried     tried
}

// bounds are how many slices a reservation has at least and at most.
type bounds struct {
	floor, most int
	over        time.Time // when it ended, zero if it has not
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
			d.pooled[r.Addr.Scoped()] = d.newPool(r, recorded[r.Addr])
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

// heldBy is who uses a slice of a reservation now, or has a part of it.
func (d *differ) heldBy(name string) (schema.Address, bool) {
	if addr, whole := d.heldWhole(name); whole {
		return addr, true
	}
	return d.guestOn(name)
}

// heldWhole is who uses a slice as a whole.
func (d *differ) heldWhole(name string) (schema.Address, bool) {
	addr, ok := d.holders[name]
	if !ok {
		return addr, false
	}
	j := d.next.Jobs[addr]
	return addr, j != nil && (slices.Contains(j.Slices, name) || slices.Contains(j.Staged, name))
}

// pools keeps every reservation at its min, and deletes what it may not have: those
// of the highest priority first, where not all of them can be had. A slice that a
// job holds is that job's to bring up.
func (d *differ) pools() {
	if len(d.desired.Reservations) == 0 {
		return
	}
	recorded := d.poolSlices()
	for _, r := range byPriority(d.desired.Reservations) {
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

// byPriority are reservations, those that get capacity first at the beginning.
func byPriority(all []schema.Reservation) []*schema.Reservation {
	ordered := make([]*schema.Reservation, 0, len(all))
	for i := range all {
		ordered = append(ordered, &all[i])
	}
	slices.SortStableFunc(ordered, func(a, b *schema.Reservation) int { return cmp.Compare(b.Priority, a.Priority) })
	return ordered
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
		if short := d.lacks([]schema.SliceSpec{spec}); !short.none() {
			return d.dismissFor([]schema.SliceSpec{spec}, short)
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
		case d.isBorn(spec.Name):
			p.free = append(p.free, spec.Name)
		default:
			later = append(later, spec.Name)
		}
	}
	p.free = append(p.free, later...)
}

// isBorn reports whether a slice is there with all its hosts, and is to stay.
func (d *differ) isBorn(name string) bool {
	s := d.next.Slices[name]
	st, listed := d.slices[name]
	return listed && s != nil && !s.BornAt.IsZero() && s.Terminating.IsZero() &&
		st.Phase != schema.SliceDead && st.Phase != schema.SliceDeleting
}

// short says what the reservations lack for a unit of jobs; grown
// are the slices by which they have to grow for it.
func (d *differ) short(unit []*schema.Job) (short reason, grown []schema.SliceSpec) {
	if len(unit) == 0 {
		return reason{}, nil
	}
	need := map[string]int{}
	for _, want := range unit {
		need[want.Resources.Reservation] += want.Resources.Slices
	}
	for _, name := range slices.Sorted(maps.Keys(need)) {
		p, addr := d.poolOf(name), schema.ScopedAddress(schema.KindReservation, name)
		switch {
		case p == nil:
			return because(WaitRoom, fmt.Sprintf("%s is not there", addr)), nil
		case !p.bound.over.IsZero():
			return because(WaitRoom, p.hasExpired(addr)), nil
		case need[name] > len(p.free)+p.room:
			text := fmt.Sprintf("%s: needs %d of its %d slices at once, %d free%s", addr, need[name], p.bound.most, len(p.free)+p.room, d.poolUsers(p))
			return because(WaitRoom, text), nil
		}
		grown = append(grown, d.moreOf(p, need[name]-len(p.free))...)
	}
	return reason{}, grown
}

// hasExpired says that a reservation's time is over.
func (p *pool) hasExpired(addr schema.Address) string {
	return fmt.Sprintf("%s has expired: its ttl of %s was over at %s", addr, p.of.TTL, p.bound.over.UTC().Format(time.RFC3339))
}

// draw gives a job slices of its reservation; [differ.short] found enough.
func (d *differ) draw(want *schema.Job) []string {
	p, n := d.poolOf(want.Resources.Reservation), want.Resources.Slices
	if n > len(p.free) {
		d.grow(p, n-len(p.free))
	}
	drawn := slices.Clone(p.free[:n])
	p.free, p.users, d.idles = p.free[n:], "", nil
	for _, name := range drawn {
		d.holders[name] = want.Addr
		p.noteWhole(name, d.occupant(p, want.Addr))
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
			d.remove(st, decided(d.whyNot(addr)))
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
