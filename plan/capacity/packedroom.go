package capacity

import (
	"cmp"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func shareOf(r *schema.Resources) snapshot.Share {
	s := snapshot.Share{CPU: r.CPU, Memory: r.Memory, Disk: r.Disk}
	for _, p := range r.Ports {
		if p.Number != 0 {
			s.Ports = append(s.Ports, p.Number)
		}
	}
	return s
}

// roomsOf are those of a reservation, made when first asked for.
func (d *HostCapacity) roomsOf(p *snapshot.Pool) []*snapshot.FreeHost {
	if p.Rooms != nil && p.RoomsOf == len(p.Specs) {
		return p.Rooms
	}
	p.Rooms, p.RoomsOf, p.Stays = make([]*snapshot.FreeHost, 0, len(p.Specs)), len(p.Specs), false
	for _, spec := range p.Specs {
		if !d.Closed(&spec).None() {
			continue
		}
		for n := range spec.Hosts {
			r := EmptyRoom(spec, n)
			r.Up = d.Listed[spec.Name] != nil && !d.Next.Slices[spec.Name].UpAt.IsZero()
			d.takeTaken(r)
			p.Rooms = append(p.Rooms, r)
		}
	}
	p.FindReserved()
	return p.Rooms
}

// EmptyRoom is a whole host.
func EmptyRoom(spec schema.SliceSpec, n int) *snapshot.FreeHost {
	return &snapshot.FreeHost{
		Host: spec, N: n, Ports: map[int]int{},
		CPU: spec.CPU, Memory: spec.Memory, Disk: spec.Disk, AnyMemory: spec.Memory == 0, AnyDisk: spec.Disk == 0,
	}
}

// takeTaken takes of a room what its packed tasks have, those that are leaving too.
func (d *HostCapacity) takeTaken(r *snapshot.FreeHost) {
	for _, name := range d.Packed[r.Host.Name] {
		s := d.Next.Slices[name]
		if s == nil || s.Spec.OnHost != r.N {
			continue
		}
		taken := d.ShareOfPacked(&s.Spec)
		r.Take(&taken, 1)
	}
}

// ShareOfPacked is the share that a packed task has of its host.
func (d *HostCapacity) ShareOfPacked(spec *schema.SliceSpec) snapshot.Share {
	taken := snapshot.Share{CPU: spec.CPU, Memory: spec.Memory, Disk: spec.Disk}
	if j := d.Next.Jobs[spec.Owner]; j != nil {
		taken.Ports = shareOf(&j.Spec.Resources).Ports
	}
	return taken
}

// placed is a share that was taken of a room.
type placed struct {
	room  *snapshot.FreeHost
	share *snapshot.Share
}

// Fits finds rooms for the packed jobs of a unit, all or none, and says why there
// are none; nothing if there are, which [HostCapacity.SettlePacked] then records. grown are
// slices by which reservations have to grow for that. Slices that the unit draws
// whole are left alone.
func (d *HostCapacity) Fits(unit, whole []*schema.Job) (short plan.Reason, grown []schema.SliceSpec) {
	d.Unchoose()
	if len(unit) == 0 {
		return plan.Reason{}, nil
	}
	var taken []placed
	chosen := map[schema.Address][]placed{}
	for _, want := range largestFirst(unit) {
		if short := d.isFullFor(want); !short.None() {
			d.chosenRooms = chosen
			d.Unchoose()
			return short, nil
		}
		got, ok := d.pack(want, whole)
		chosen[want.Addr] = got
		if !ok {
			d.chosenRooms = chosen
			d.Unchoose()
			return d.noRoom(want, whole, len(unit) > 1), nil
		}
		taken = append(taken, got...)
	}
	d.chosenRooms = chosen
	for _, t := range taken {
		if spec := t.room.Host; t.room.Grown && !slices.ContainsFunc(grown, func(g schema.SliceSpec) bool { return g.Name == spec.Name }) {
			grown = append(grown, spec)
		}
	}
	return plan.Reason{}, grown
}

// Unchoose gives back the rooms that were chosen for a unit and not settled in.
func (d *HostCapacity) Unchoose() {
	for addr, chosen := range d.chosenRooms {
		for _, t := range chosen {
			t.room.Take(t.share, -1)
		}
		delete(d.chosenRooms, addr)
	}
	if !d.grownRooms {
		return
	}
	d.grownRooms = false
	for _, p := range d.Pooled {
		p.Rooms = slices.DeleteFunc(p.Rooms, func(r *snapshot.FreeHost) bool { return r.Grown })
	}
}

// drawnWhole is how many slices of a job's reservation others of its unit will draw.
func drawnWhole(want *schema.Job, whole []*schema.Job) int {
	n := 0
	for _, other := range whole {
		if other.Resources.Reservation == want.Resources.Reservation {
			n += other.Resources.Slices
		}
	}
	return n
}

// pack takes a room for each task of a job and reports whether there are enough;
// those that it took are returned in any case.
func (d *HostCapacity) pack(want *schema.Job, whole []*schema.Job) (taken []placed, ok bool) {
	p := d.PoolOf(want.Resources.Reservation)
	if p == nil {
		return nil, false
	}
	need, drawn := shareOf(&want.Resources), drawnWhole(want, whole)
	except := p.Free[:min(drawn, len(p.Free))] // see draw
	for range want.Resources.Slices {
		r := d.bestRoom(p, &need, except)
		if r == nil {
			r = d.grownRoom(p, &need, max(0, drawn-len(p.Free)))
		}
		if r == nil {
			return taken, false
		}
		r.Take(&need, 1)
		taken = append(taken, placed{r, &need})
	}
	return taken, true
}

// isFullFor says why a job has no room, if another one has been told so already
// that asks for the same.
func (d *HostCapacity) isFullFor(want *schema.Job) plan.Reason {
	p := d.PoolOf(want.Resources.Reservation)
	if p == nil || p.Reserved.Off { // the other one may have been kept from it
		return plan.Reason{}
	}
	need := shareOf(&want.Resources)
	for i := range p.Full {
		if p.Full[i].Covers(&need, want.Resources.Slices) {
			return p.Full[i].Why
		}
	}
	return plan.Reason{}
}

// largestFirst orders jobs so that those that are hard to place come first.
func largestFirst(unit []*schema.Job) []*schema.Job {
	ordered := slices.Clone(unit)
	slices.SortStableFunc(ordered, func(a, b *schema.Job) int {
		x, y := &a.Resources, &b.Resources
		return cmp.Or(cmp.Compare(y.CPU, x.CPU), cmp.Compare(y.Memory, x.Memory), cmp.Compare(y.Disk, x.Disk))
	})
	return ordered
}

// bestRoom is the room that a share leaves the least of: what is up before what is
// not, then by cores, memory and disk. Nil: it fits nowhere.
func (d *HostCapacity) bestRoom(p *snapshot.Pool, s *snapshot.Share, except []string) *snapshot.FreeHost {
	return bestOf(d.roomsOf(p), s, func(r *snapshot.FreeHost) bool { return d.isReserved(r, except) })
}

// grownRoom is a host by which a reservation may grow, beside others that it is to
// grow by; nil if there is none that a share fits on.
func (d *HostCapacity) grownRoom(p *snapshot.Pool, s *snapshot.Share, others int) *snapshot.FreeHost {
	for _, r := range p.Rooms {
		if r.Grown && r.N == 0 {
			others++
		}
	}
	if others >= p.Room {
		return nil
	}
	spec := d.moreOf(p, others+1)[others]
	if !EmptyRoom(spec, 0).Lacks(s).None() {
		return nil
	}
	first := len(p.Rooms)
	d.grownRooms = true
	for n := range spec.Hosts {
		r := EmptyRoom(spec, n)
		r.Grown = true
		p.Rooms = append(p.Rooms, r)
	}
	return p.Rooms[first]
}

func bestOf(rooms []*snapshot.FreeHost, s *snapshot.Share, reserved func(*snapshot.FreeHost) bool) *snapshot.FreeHost {
	var best *snapshot.FreeHost
	for _, r := range rooms {
		if r.Lacks(s).None() && !reserved(r) && (best == nil || r.IsBetter(best)) {
			best = r
		}
	}
	return best
}

// isReserved reports whether a room's slice is, or will be, a job's as a whole.
func (d *HostCapacity) isReserved(r *snapshot.FreeHost, except []string) bool {
	if slices.Contains(except, r.Host.Name) || d.isKeptWhole(r) {
		return true
	}
	_, whole := d.HeldWhole(r.Host.Name)
	return whole
}

// IsOthers reports whether a slice that a job is recorded to hold as a whole is another
// job's, or has packed tasks: it was given away and assigned after the state was saved.
func (d *HostCapacity) IsOthers(name string, job schema.Address) bool {
	if by, whole := d.HeldWhole(name); whole && by != job {
		return true
	}
	_, shared := d.PackedOn(name)
	return shared
}

// SettlePacked records the placements that were found for a job, and returns
// their names.
func (d *HostCapacity) SettlePacked(want *schema.Job) []string {
	var names []string
	index := 0
	p := d.PoolOf(want.Resources.Reservation)
	for _, got := range d.chosenRooms[want.Addr] {
		host := &got.room.Host
		d.growBy(p, host)
		g := state.PackedTask{Host: got.room.N, CPU: got.share.CPU, Memory: got.share.Memory, Disk: got.share.Disk}
		for ; ; index++ {
			g.Slice = packedName(want.Addr, index, host, g.Host)
			if d.Next.Slices[g.Slice] == nil && d.Listed[g.Slice] == nil && !slices.Contains(names, g.Slice) {
				break
			}
		}
		d.PutSlice(state.Slice{Spec: snapshot.PackedSpec(want.Addr, index, host, g)})
		names = append(names, g.Slice)
		got.room.Stays.Packed = append(got.room.Stays.Packed, snapshot.Stay{By: d.occupant(p, want.Addr), Share: *got.share})
		index++
		if n := slices.Index(p.Free, host.Name); n >= 0 {
			p.Free = slices.Delete(slices.Clone(p.Free), n, n+1)
		}
	}
	p.Users = ""
	delete(d.chosenRooms, want.Addr)
	return names
}

// growBy adds a slice to a pool that does not have it.
func (d *HostCapacity) growBy(p *snapshot.Pool, spec *schema.SliceSpec) {
	if slices.ContainsFunc(p.Specs, func(has schema.SliceSpec) bool { return has.Name == spec.Name }) {
		return
	}
	p.Used[spec.Index] = true
	if st, listed := d.Listed[spec.Name]; listed { // in no record
		d.RecordOf(st)
	} else {
		d.PutSlice(state.Slice{Spec: *spec})
	}
	p.Specs = append(p.Specs, *spec)
	slices.SortFunc(p.Specs, func(a, b schema.SliceSpec) int { return cmp.Compare(a.Index, b.Index) })
	p.Room--
}
