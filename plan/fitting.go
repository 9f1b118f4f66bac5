package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// Whether packed jobs fit is no matter of sums: each task needs a host that has
// enough of everything, and a slice is free when the last guest has gone. So it is
// tried, on hosts as they will be when some of those who have a part of them have
// gone.

// fitting is what a unit needs of one reservation whose hosts are shared.
type fitting struct {
	d     *differ
	pool  *pool
	name  string        // of the reservation
	whole int           // slices that it draws as such
	jobs  []*schema.Job // packed ones, the largest first
	ports bool          // some ask for fixed ones
	still bool          // it is not to grow
}

// occupant is a unit that has a part of a reservation, or some of its slices.
type occupant struct {
	unit     schema.Address
	mortal   bool // it ends some day
	sentence bool // it ends in what is being tried
}

func isMortal(o *occupant) bool    { return o.mortal }
func isSentenced(o *occupant) bool { return o.sentence }
func staysOn(*occupant) bool       { return false }

// stay is a guest of a host.
type stay struct {
	by    *occupant
	share share
}

// staying are those who have a part of a host, or all of it, and who of them goes
// by what is going on.
type staying struct {
	guests []stay
	goes   []stay
	whole  *occupant // who has the slice, nil if nobody has or it goes
}

// layout says where a unit goes. Its rooms are not those of the reservation but
// what they will be.
type layout struct {
	rooms []placed
	whole []string
	grown int // slices by which the reservation is to grow, those for rooms
}

// fittings are those of a unit's jobs.
func (d *differ) fittings(packed, whole []*schema.Job) []*fitting {
	var all []*fitting
	of := func(name string) *fitting {
		p := d.poolOf(name)
		if p == nil || !p.bound.over.IsZero() {
			return nil
		}
		i := slices.IndexFunc(all, func(f *fitting) bool { return f.name == name })
		if i < 0 {
			i = len(all)
			all = append(all, &fitting{d: d, pool: p, name: name})
		}
		return all[i]
	}
	for _, want := range largestFirst(packed) {
		if f := of(want.Resources.Reservation); f != nil {
			f.jobs = append(f.jobs, want)
			f.ports = f.ports || len(shareOf(&want.Resources).ports) > 0
		}
	}
	for _, want := range whole {
		if !d.isShared(want.Resources.Reservation) {
			continue
		}
		if f := of(want.Resources.Reservation); f != nil {
			f.whole += want.Resources.Slices
		}
	}
	return all
}

// isShared reports whether some host of a reservation has guests, or may get some.
func (d *differ) isShared(name string) bool {
	if d.shared == nil {
		d.shared = map[string]bool{}
		for i := range d.desired.Jobs {
			if r := &d.desired.Jobs[i].Resources; r.Packed {
				d.shared[r.Reservation] = true
			}
		}
		for on := range d.guests {
			if host := d.next.Slices[on]; host != nil {
				d.shared[host.Spec.Owner.Scoped()] = true
			}
		}
	}
	return d.shared[name]
}

// key is the same for those who need the same.
func (f *fitting) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d %t", f.name, f.whole, f.still)
	for _, want := range f.jobs {
		s := shareOf(&want.Resources)
		fmt.Fprintf(&b, "; %d %v %d %d %v", want.Resources.Slices, s.cpu, s.memory, s.disk, s.ports)
	}
	return b.String()
}

// size is how many places of its own it needs.
func (f *fitting) size() int {
	n := f.whole
	for _, want := range f.jobs {
		n += want.Resources.Slices
	}
	return n
}

func unitAt(addr schema.Address) schema.Address {
	if g := addr.GroupAddress(); !g.IsZero() {
		return g
	}
	return addr
}

// findStays finds out who has a part of a reservation's hosts, and who of them goes.
func (d *differ) findStays(p *pool) []*room {
	rooms := d.roomsOf(p)
	if p.stays {
		return rooms
	}
	p.stays, p.occupants = true, map[schema.Address]*occupant{}
	for _, r := range rooms {
		r.stays = staying{}
		for _, name := range d.guests[r.host.Name] {
			s := d.next.Slices[name]
			if s == nil || s.Spec.OnHost != r.n {
				continue
			}
			one := stay{share: d.shareOfGuest(&s.Spec)}
			if !s.Terminating.IsZero() || d.leavesSlice(s.Spec.Owner, name) {
				r.stays.goes = append(r.stays.goes, one)
				continue
			}
			one.by = d.occupant(p, s.Spec.Owner)
			r.stays.guests = append(r.stays.guests, one)
		}
		if holder, held := d.heldWhole(r.host.Name); held && !d.leavesSlice(holder, r.host.Name) {
			r.stays.whole = d.occupant(p, holder)
		}
	}
	return rooms
}

// noteWhole takes note of who has a slice as a whole now, nil for nobody: what was
// found out before would give it to somebody else too.
func (p *pool) noteWhole(name string, by *occupant) {
	for _, r := range p.rooms {
		if r.host.Name == name {
			r.stays.whole = by
		}
	}
}

// occupant is the one that a job is of.
func (d *differ) occupant(p *pool, job schema.Address) *occupant {
	unit := unitAt(job)
	o := p.occupants[unit]
	if o == nil {
		o = &occupant{unit: unit, mortal: d.endsSomeDay(unit)}
		if p.occupants == nil {
			p.occupants = map[schema.Address]*occupant{}
		}
		p.occupants[unit] = o
	}
	return o
}

// leavesSlice reports whether a job will give up what it has of a slice.
func (d *differ) leavesSlice(addr schema.Address, name string) bool {
	j := d.next.Jobs[addr]
	return j == nil || j.Status.Ended() || !j.YieldsTo.IsZero() || j.Stop || d.leaving[addr] ||
		!slices.Contains(j.Slices, name) && !slices.Contains(j.Staged, name)
}

// emptied are the hosts of the reservation as they will be when those have gone who
// are going, and those who end.
func (f *fitting) emptied(ends func(*occupant) bool) []*room {
	of := f.d.findStays(f.pool)
	later, rooms := make([]room, 0, len(of)), make([]*room, 0, len(of))
	for _, r := range of {
		if r.grown {
			continue
		}
		is := *r
		if f.ports {
			is.ports = maps.Clone(r.ports)
		}
		is.busy = f.d.isKeptWhole(r) || r.stays.whole != nil && !ends(r.stays.whole)
		for i := range r.stays.goes {
			f.vacate(&is, &r.stays.goes[i])
		}
		for i := range r.stays.guests {
			if ends(r.stays.guests[i].by) {
				f.vacate(&is, &r.stays.guests[i])
			}
		}
		later = append(later, is)
		rooms = append(rooms, &later[len(later)-1])
	}
	return rooms
}

// take is room.take, but leaves ports alone that nobody asks for: they are the
// reservation's own.
func (f *fitting) take(r *room, s *share, n int) {
	if !f.ports {
		s = &share{cpu: s.cpu, memory: s.memory, disk: s.disk}
	}
	r.take(s, n)
}

func (f *fitting) vacate(r *room, s *stay) { f.take(r, &s.share, -1) }

// lay finds a place for all that the unit needs, when those have gone who are
// going, and those who end.
func (f *fitting) lay(ends func(*occupant) bool) (layout, bool) {
	rooms := f.emptied(ends)
	l := layout{whole: f.pickWhole(rooms)}
	spare := len(l.whole) - f.whole // by which it may grow for guests
	if !f.still {
		spare += f.pool.room
	}
	if spare < 0 {
		return layout{}, false
	}
	for _, want := range f.jobs {
		need := shareOf(&want.Resources)
		for range want.Resources.Slices {
			r := bestOf(rooms, &need, func(r *room) bool { return r.busy })
			if r == nil && l.grown < spare {
				l.grown++
				grown := f.grownHosts(l.grown)
				rooms = append(rooms, grown...)
				r = bestOf(grown, &need, func(*room) bool { return false })
			}
			if r == nil {
				return layout{}, false
			}
			f.take(r, &need, 1)
			l.rooms = append(l.rooms, placed{r, &need})
		}
	}
	return l, true
}

// grownHosts are those of the n-th slice by which the reservation may grow.
func (f *fitting) grownHosts(n int) []*room {
	spec := PoolSlice(f.d.stack, f.pool.of, -n)
	rooms := make([]*room, 0, spec.Hosts)
	for i := range spec.Hosts {
		r := emptyRoom(spec, i)
		r.grown = true
		rooms = append(rooms, r)
	}
	return rooms
}

// pickWhole picks the slices that the unit draws as such, those that are free
// already first, and has nobody else have a part of them.
func (f *fitting) pickWhole(rooms []*room) []string {
	if f.whole == 0 {
		return nil
	}
	taken := map[string]bool{}
	var names []string
	for _, r := range rooms {
		if r.n == 0 {
			names = append(names, r.host.Name)
		}
		if r.busy || r.guests > 0 {
			taken[r.host.Name] = true
		}
	}
	rank := func(name string) int {
		if i := slices.Index(f.pool.free, name); i >= 0 {
			return i
		}
		return len(f.pool.free)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return taken[name] })
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	names = names[:min(f.whole, len(names))]
	for _, r := range rooms {
		r.busy = r.busy || slices.Contains(names, r.host.Name)
	}
	return names
}

// uses reports whether a layout has something of a room.
func (l *layout) uses(r *room) bool {
	return slices.Contains(l.whole, r.host.Name) ||
		slices.ContainsFunc(l.rooms, func(p placed) bool { return p.room.host.Name == r.host.Name && p.room.n == r.n })
}

// tried is what was found out about a reservation in this Diff, by what was asked
// for, so that many who ask for the same are not tried one by one.
type tried struct {
	tight    map[string]bool // there will be no room
	late     map[string]bool // nor some day, beside what is kept by now
	comes    map[string]bool // whether there will be some day
	hopeless map[string]int  // the highest of the bands that cannot make any
}

// tightest are the fittings for which there will be no room.
func tightest(all []*fitting) []*fitting {
	var found []*fitting
	for _, f := range all {
		if f.isTight() {
			found = append(found, f)
		}
	}
	return found
}

func (f *fitting) isTight() bool {
	t, key := &f.pool.tried, f.key()
	if t.tight[key] {
		return true
	}
	if _, ok := f.lay(staysOn); ok {
		return false
	}
	if t.tight == nil {
		t.tight = map[string]bool{}
	}
	t.tight[key] = true
	return true
}

// comesTrue reports whether there is room when all has ended that ends some day.
func (f *fitting) comesTrue() bool {
	t, key := &f.pool.tried, f.key()
	comes, known := t.comes[key]
	if !known {
		if t.comes == nil {
			t.comes = map[string]bool{}
		}
		_, comes = f.lay(isMortal)
		t.comes[key] = comes
	}
	return comes
}

// giveUpHope notes that nobody makes room for as much for one of as low a band.
func (f *fitting) giveUpHope(band int) {
	t, key := &f.pool.tried, f.key()
	if t.hopeless == nil {
		t.hopeless = map[string]int{}
	}
	if highest, known := t.hopeless[key]; !known || band < highest {
		t.hopeless[key] = band
	}
}

// isHopelessIn reports whether as much was tried in vain by as high a band.
func isHopelessIn(tight []*fitting, band int) bool {
	return slices.ContainsFunc(tight, func(f *fitting) bool {
		highest, known := f.pool.tried.hopeless[f.key()]
		return known && highest <= band
	})
}

// leaveHosts takes note that more are going than before.
func (d *differ) leaveHosts() {
	for _, p := range d.pooled {
		p.stays, p.tried.tight, p.tried.late = false, nil, nil
	}
}
