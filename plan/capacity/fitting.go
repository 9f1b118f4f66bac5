package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// Whether packed jobs fit is no matter of sums: each task needs a host that has
// enough of everything, and a slice is free when its last packed task has gone. So it is
// tried, on hosts as they will be when some of their occupants have
// gone.

// Fitting is what a unit needs of one reservation whose hosts are shared.
type Fitting struct {
	D     *HostCapacity
	Pool  *snapshot.Pool
	Name  string        // of the reservation
	whole int           // slices that it draws as such
	jobs  []*schema.Job // packed ones, the largest first
	ports bool          // some ask for fixed ones
	still bool          // it is not to grow
}

func isFinite(o *snapshot.Occupant) bool { return o.Finite }

// IsVictim reports whether an occupant is to make room.
func IsVictim(o *snapshot.Occupant) bool { return o.Victim }

func staysOn(*snapshot.Occupant) bool { return false }

// Layout says where a unit goes. Its rooms are not those of the reservation but
// what they will be.
type Layout struct {
	rooms []placed
	whole []string
	grown int // slices by which the reservation is to grow, those for rooms
}

// Fittings are those of a unit's jobs.
func (d *HostCapacity) Fittings(packed, whole []*schema.Job) []*Fitting {
	var all []*Fitting
	of := func(name string) *Fitting {
		p := d.PoolOf(name)
		if p == nil || !p.Bound.Over.IsZero() {
			return nil
		}
		i := slices.IndexFunc(all, func(f *Fitting) bool { return f.Name == name })
		if i < 0 {
			i = len(all)
			all = append(all, &Fitting{D: d, Pool: p, Name: name})
		}
		return all[i]
	}
	for _, want := range largestFirst(packed) {
		if f := of(want.Resources.Reservation); f != nil {
			f.jobs = append(f.jobs, want)
			f.ports = f.ports || len(shareOf(&want.Resources).Ports) > 0
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

// isShared reports whether some host of a reservation has packed tasks, or may get some.
func (d *HostCapacity) isShared(name string) bool {
	if d.shared == nil {
		d.shared = map[string]bool{}
		for i := range d.Desired.Jobs {
			if r := &d.Desired.Jobs[i].Resources; r.Packed {
				d.shared[r.Reservation] = true
			}
		}
		for on := range d.Packed {
			if host := d.Next.Slices[on]; host != nil {
				d.shared[host.Spec.Owner.Scoped()] = true
			}
		}
	}
	return d.shared[name]
}

// key is the same for units that need the same.
func (f *Fitting) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d %t", f.Name, f.whole, f.still)
	for _, want := range f.jobs {
		s := shareOf(&want.Resources)
		fmt.Fprintf(&b, "; %d %v %d %d %v", want.Resources.Slices, s.CPU, s.Memory, s.Disk, s.Ports)
	}
	return b.String()
}

// Size is how many places of its own it needs.
func (f *Fitting) Size() int {
	n := f.whole
	for _, want := range f.jobs {
		n += want.Resources.Slices
	}
	return n
}

// FindStays finds out who has a part of a reservation's hosts, and who of them goes.
func (d *HostCapacity) FindStays(p *snapshot.Pool) []*snapshot.FreeHost {
	rooms := d.roomsOf(p)
	if p.Stays {
		return rooms
	}
	p.Stays, p.Occupants = true, map[schema.Address]*snapshot.Occupant{}
	for _, r := range rooms {
		r.Stays = snapshot.Staying{}
		for _, name := range d.Packed[r.Host.Name] {
			s := d.Next.Slices[name]
			if s == nil || s.Spec.OnHost != r.N {
				continue
			}
			one := snapshot.Stay{Share: d.ShareOfPacked(&s.Spec)}
			if !s.Terminating.IsZero() || d.leavesSlice(s.Spec.Owner, name) {
				r.Stays.Goes = append(r.Stays.Goes, one)
				continue
			}
			one.By = d.occupant(p, s.Spec.Owner)
			r.Stays.Packed = append(r.Stays.Packed, one)
		}
		if holder, held := d.HeldWhole(r.Host.Name); held && !d.leavesSlice(holder, r.Host.Name) {
			r.Stays.Whole = d.occupant(p, holder)
		}
	}
	return rooms
}

// leavesSlice reports whether a job will give up what it has of a slice.
func (d *HostCapacity) leavesSlice(addr schema.Address, name string) bool {
	j := d.Next.Jobs[addr]
	return j == nil || j.Status.Ended() || !j.YieldsTo.IsZero() || j.Stop || d.Leaving[addr] ||
		!slices.Contains(j.Slices, name) && !slices.Contains(j.Staged, name)
}

// emptied are the hosts of the reservation as they will be when those have gone who
// are going, and those that end.
func (f *Fitting) emptied(ends func(*snapshot.Occupant) bool) []*snapshot.FreeHost {
	of := f.D.FindStays(f.Pool)
	later, rooms := make([]snapshot.FreeHost, 0, len(of)), make([]*snapshot.FreeHost, 0, len(of))
	for _, r := range of {
		if r.Grown {
			continue
		}
		is := *r
		if f.ports {
			is.Ports = maps.Clone(r.Ports)
		}
		is.Busy = f.D.isKeptWhole(r) || r.Stays.Whole != nil && !ends(r.Stays.Whole)
		for i := range r.Stays.Goes {
			f.vacate(&is, &r.Stays.Goes[i])
		}
		for i := range r.Stays.Packed {
			if ends(r.Stays.Packed[i].By) {
				f.vacate(&is, &r.Stays.Packed[i])
			}
		}
		later = append(later, is)
		rooms = append(rooms, &later[len(later)-1])
	}
	return rooms
}

// take is room.take, but leaves ports alone that no task asks for: they are the
// reservation's own.
func (f *Fitting) take(r *snapshot.FreeHost, s *snapshot.Share, n int) {
	if !f.ports {
		s = &snapshot.Share{CPU: s.CPU, Memory: s.Memory, Disk: s.Disk}
	}
	r.Take(s, n)
}

func (f *Fitting) vacate(r *snapshot.FreeHost, s *snapshot.Stay) { f.take(r, &s.Share, -1) }

// Lay finds a place for all that the unit needs, when those have gone who are
// going, and those that end.
func (f *Fitting) Lay(ends func(*snapshot.Occupant) bool) (Layout, bool) {
	rooms := f.emptied(ends)
	l := Layout{whole: f.pickWhole(rooms)}
	spare := len(l.whole) - f.whole // by which it may grow for packed tasks
	if !f.still {
		spare += f.Pool.Room
	}
	if spare < 0 {
		return Layout{}, false
	}
	for _, want := range f.jobs {
		need := shareOf(&want.Resources)
		for range want.Resources.Slices {
			r := bestOf(rooms, &need, func(r *snapshot.FreeHost) bool { return r.Busy })
			if r == nil && l.grown < spare {
				l.grown++
				grown := f.grownHosts(l.grown)
				rooms = append(rooms, grown...)
				r = bestOf(grown, &need, func(*snapshot.FreeHost) bool { return false })
			}
			if r == nil {
				return Layout{}, false
			}
			f.take(r, &need, 1)
			l.rooms = append(l.rooms, placed{r, &need})
		}
	}
	return l, true
}

// grownHosts are those of the n-th slice by which the reservation may grow.
func (f *Fitting) grownHosts(n int) []*snapshot.FreeHost {
	spec := plan.PoolSlice(f.D.Stack, f.Pool.Of, -n)
	rooms := make([]*snapshot.FreeHost, 0, spec.Hosts)
	for i := range spec.Hosts {
		r := EmptyRoom(spec, i)
		r.Grown = true
		rooms = append(rooms, r)
	}
	return rooms
}

// pickWhole picks the slices that the unit draws as such, those that are free
// already first, and leaves no part of them to others.
func (f *Fitting) pickWhole(rooms []*snapshot.FreeHost) []string {
	if f.whole == 0 {
		return nil
	}
	taken := map[string]bool{}
	var names []string
	for _, r := range rooms {
		if r.N == 0 {
			names = append(names, r.Host.Name)
		}
		if r.Busy || r.Packed > 0 {
			taken[r.Host.Name] = true
		}
	}
	rank := func(name string) int {
		if i := slices.Index(f.Pool.Free, name); i >= 0 {
			return i
		}
		return len(f.Pool.Free)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return taken[name] })
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	names = names[:min(f.whole, len(names))]
	for _, r := range rooms {
		r.Busy = r.Busy || slices.Contains(names, r.Host.Name)
	}
	return names
}

// Uses reports whether a layout has something of a room.
func (l *Layout) Uses(r *snapshot.FreeHost) bool {
	return slices.Contains(l.whole, r.Host.Name) ||
		slices.ContainsFunc(l.rooms, func(p placed) bool { return p.room.Host.Name == r.Host.Name && p.room.N == r.N })
}

// Tightest are the fittings for which there will be no room.
func Tightest(all []*Fitting) []*Fitting {
	var found []*Fitting
	for _, f := range all {
		if f.isTight() {
			found = append(found, f)
		}
	}
	return found
}

func (f *Fitting) isTight() bool {
	t, key := &f.Pool.Tried, f.key()
	if t.Tight[key] {
		return true
	}
	if _, ok := f.Lay(staysOn); ok {
		return false
	}
	if t.Tight == nil {
		t.Tight = map[string]bool{}
	}
	t.Tight[key] = true
	return true
}

// ComesTrue reports whether there is room when all has ended that ends some day.
func (f *Fitting) ComesTrue() bool {
	t, key := &f.Pool.Tried, f.key()
	comes, known := t.Comes[key]
	if !known {
		if t.Comes == nil {
			t.Comes = map[string]bool{}
		}
		_, comes = f.Lay(isFinite)
		t.Comes[key] = comes
	}
	return comes
}

// GiveUp notes that no victims make room for as much in as low a band.
func (f *Fitting) GiveUp(band int) {
	t, key := &f.Pool.Tried, f.key()
	if t.Infeasible == nil {
		t.Infeasible = map[string]int{}
	}
	if highest, known := t.Infeasible[key]; !known || band < highest {
		t.Infeasible[key] = band
	}
}

// IsInfeasibleIn reports whether as much was tried in vain by as high a band.
func IsInfeasibleIn(tight []*Fitting, band int) bool {
	return slices.ContainsFunc(tight, func(f *Fitting) bool {
		highest, known := f.Pool.Tried.Infeasible[f.key()]
		return known && highest <= band
	})
}

// LeaveHosts takes note that more are going than before.
func (d *HostCapacity) LeaveHosts() {
	for _, p := range d.Pooled {
		p.Stays, p.Tried.Tight, p.Tried.Late = false, nil, nil
	}
}
