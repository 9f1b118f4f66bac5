package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// room is what a host of a reservation has left for guests.
type room struct {
	host   schema.SliceSpec // the slice
	n      int              // of its hosts
	up     bool
	grown  bool // its slice is one by which the reservation would grow
	cpu    float64
	memory schema.Bytes   // -1 where the reservation does not say how much there is
	disk   schema.Bytes   // likewise
	ports  map[int]int    // fixed ones, by how many guests have them
	guests int            // that have a part of it, those for whom some is kept among them
	kept   schema.Address // the last for whom some of it is kept, or all
	stays  staying        // see findStays
	busy   bool           // its slice is, or will be, a job's as a whole; of hosts as they may be, see fitting
}

// share is what one task takes of a host.
type share struct {
	cpu    float64
	memory schema.Bytes
	disk   schema.Bytes
	ports  []int
}

func shareOf(r *schema.Resources) share {
	s := share{cpu: r.CPU, memory: r.Memory, disk: r.Disk}
	for _, p := range r.Ports {
		if p.Number != 0 {
			s.ports = append(s.ports, p.Number)
		}
	}
	return s
}

func (s share) String() string {
	words := []string{fmt.Sprintf("%g CPU", s.cpu)}
	if s.memory > 0 {
		words = append(words, s.memory.String()+" memory")
	}
	if s.disk > 0 {
		words = append(words, s.disk.String()+" disk")
	}
	for _, port := range s.ports {
		words = append(words, fmt.Sprintf("port %d", port))
	}
	return strings.Join(words, ", ")
}

// cpuDust is what may be lost by adding up parts of cores.
const cpuDust = 1e-9

// lack is what a room has too little of; the zero lack is none.
type lack struct {
	of   lackOf
	port int // with lackPort
}

// lackOf is a closed set.
type lackOf string

const (
	lackNone   lackOf = ""
	lackCPU    lackOf = "CPU"
	lackMemory lackOf = "memory"
	lackDisk   lackOf = "disk"
	lackPort   lackOf = "port"
)

func (l lack) none() bool { return l.of == lackNone }

// lacks is what a room has too little of, none if a share fits.
func (r *room) lacks(s *share) lack {
	switch {
	case s.cpu > r.cpu+cpuDust:
		return lack{of: lackCPU}
	case r.memory >= 0 && s.memory > r.memory:
		return lack{of: lackMemory}
	case r.disk >= 0 && s.disk > r.disk:
		return lack{of: lackDisk}
	}
	for _, port := range s.ports {
		if r.ports[port] > 0 {
			return lack{of: lackPort, port: port}
		}
	}
	return lack{}
}

// take takes a share of a room n times; -1 gives it back.
func (r *room) take(s *share, n int) {
	r.cpu -= float64(n) * s.cpu
	if r.memory >= 0 {
		r.memory -= schema.Bytes(n) * s.memory
	}
	if r.disk >= 0 {
		r.disk -= schema.Bytes(n) * s.disk
	}
	for _, port := range s.ports {
		r.ports[port] += n
	}
	r.guests += n
}

// rooms are those of a reservation, made when first asked for.
func (d *differ) roomsOf(p *pool) []*room {
	if p.rooms != nil && p.roomsOf == len(p.specs) {
		return p.rooms
	}
	p.rooms, p.roomsOf, p.stays = make([]*room, 0, len(p.specs)), len(p.specs), false
	for _, spec := range p.specs {
		if !d.closed(&spec).none() {
			continue
		}
		for n := range spec.Hosts {
			r := emptyRoom(spec, n)
			r.up = d.slices[spec.Name] != nil && !d.next.Slices[spec.Name].BornAt.IsZero()
			d.takeTaken(r)
			p.rooms = append(p.rooms, r)
		}
	}
	p.findKept()
	return p.rooms
}

// emptyRoom is a whole host.
func emptyRoom(spec schema.SliceSpec, n int) *room {
	return &room{
		host: spec, n: n, ports: map[int]int{},
		cpu: spec.CPU, memory: cmp.Or(spec.Memory, -1), disk: cmp.Or(spec.Disk, -1),
	}
}

// takeTaken takes of a room what its guests have, those that are leaving too.
func (d *differ) takeTaken(r *room) {
	for _, name := range d.guests[r.host.Name] {
		s := d.next.Slices[name]
		if s == nil || s.Spec.OnHost != r.n {
			continue
		}
		taken := d.shareOfGuest(&s.Spec)
		r.take(&taken, 1)
	}
}

// shareOfGuest is what a guest has of its host.
func (d *differ) shareOfGuest(spec *schema.SliceSpec) share {
	taken := share{cpu: spec.CPU, memory: spec.Memory, disk: spec.Disk}
	if j := d.next.Jobs[spec.Owner]; j != nil {
		taken.ports = shareOf(&j.Spec.Resources).ports
	}
	return taken
}

// placed is a share that was taken of a room.
type placed struct {
	room  *room
	share *share
}

// fits finds rooms for the packed jobs of a unit, all or none, and says why there
// are none; nothing if there are, which [differ.settleGuests] then gives them. grown are
// slices by which reservations have to grow for that. Slices that the unit draws
// whole are left alone.
func (d *differ) fits(unit, whole []*schema.Job) (short reason, grown []schema.SliceSpec) {
	d.unchoose()
	if len(unit) == 0 {
		return reason{}, nil
	}
	var taken []placed
	chosen := map[schema.Address][]placed{}
	for _, want := range largestFirst(unit) {
		if short := d.isFullFor(want); !short.none() {
			d.chosenRooms = chosen
			d.unchoose()
			return short, nil
		}
		got, ok := d.pack(want, whole)
		chosen[want.Addr] = got
		if !ok {
			d.chosenRooms = chosen
			d.unchoose()
			return d.noRoom(want, whole, len(unit) > 1), nil
		}
		taken = append(taken, got...)
	}
	d.chosenRooms = chosen
	for _, t := range taken {
		if spec := t.room.host; t.room.grown && !slices.ContainsFunc(grown, func(g schema.SliceSpec) bool { return g.Name == spec.Name }) {
			grown = append(grown, spec)
		}
	}
	return reason{}, grown
}

// unchoose gives back the rooms that were chosen for a unit and not settled in.
func (d *differ) unchoose() {
	for addr, chosen := range d.chosenRooms {
		for _, t := range chosen {
			t.room.take(t.share, -1)
		}
		delete(d.chosenRooms, addr)
	}
	if !d.grownRooms {
		return
	}
	d.grownRooms = false
	for _, p := range d.pooled {
		p.rooms = slices.DeleteFunc(p.rooms, func(r *room) bool { return r.grown })
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
func (d *differ) pack(want *schema.Job, whole []*schema.Job) (taken []placed, ok bool) {
	p := d.poolOf(want.Resources.Reservation)
	if p == nil {
		return nil, false
	}
	need, drawn := shareOf(&want.Resources), drawnWhole(want, whole)
	except := p.free[:min(drawn, len(p.free))] // see draw
	for range want.Resources.Slices {
		r := d.bestRoom(p, &need, except)
		if r == nil {
			r = d.grownRoom(p, &need, max(0, drawn-len(p.free)))
		}
		if r == nil {
			return taken, false
		}
		r.take(&need, 1)
		taken = append(taken, placed{r, &need})
	}
	return taken, true
}

// isFullFor says why a job has no room, if another one has been told so already
// that asks for the same.
func (d *differ) isFullFor(want *schema.Job) reason {
	p := d.poolOf(want.Resources.Reservation)
	if p == nil || p.keeps.off { // the other one may have been kept from it
		return reason{}
	}
	need := shareOf(&want.Resources)
	for i := range p.full {
		if p.full[i].covers(&need, want.Resources.Slices) {
			return p.full[i].why
		}
	}
	return reason{}
}

// fullFor is what a reservation has no room left for in this Diff, so that many
// jobs that wait for the same are told so without a look at every host.
type fullFor struct {
	share share
	tasks int
	why   reason
}

func (f *fullFor) covers(s *share, tasks int) bool {
	return tasks == f.tasks && s.cpu == f.share.cpu && s.memory == f.share.memory && s.disk == f.share.disk &&
		slices.Equal(f.share.ports, s.ports)
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
func (d *differ) bestRoom(p *pool, s *share, except []string) *room {
	return bestOf(d.roomsOf(p), s, func(r *room) bool { return d.isReserved(r, except) })
}

// grownRoom is a host by which a reservation may grow, beside others that it is to
// grow by; nil if there is none that a share fits on.
func (d *differ) grownRoom(p *pool, s *share, others int) *room {
	for _, r := range p.rooms {
		if r.grown && r.n == 0 {
			others++
		}
	}
	if others >= p.room {
		return nil
	}
	spec := d.moreOf(p, others+1)[others]
	if !emptyRoom(spec, 0).lacks(s).none() {
		return nil
	}
	first := len(p.rooms)
	d.grownRooms = true
	for n := range spec.Hosts {
		r := emptyRoom(spec, n)
		r.grown = true
		p.rooms = append(p.rooms, r)
	}
	return p.rooms[first]
}

func bestOf(rooms []*room, s *share, reserved func(*room) bool) *room {
	var best *room
	for _, r := range rooms {
		if r.lacks(s).none() && !reserved(r) && (best == nil || r.isBetter(best)) {
			best = r
		}
	}
	return best
}

// isReserved reports whether a room's slice is, or will be, a job's as a whole.
func (d *differ) isReserved(r *room, except []string) bool {
	if slices.Contains(except, r.host.Name) || d.isKeptWhole(r) {
		return true
	}
	_, whole := d.heldWhole(r.host.Name)
	return whole
}

func (r *room) isBetter(other *room) bool {
	if r.up != other.up {
		return r.up
	}
	// In whole numbers: what is lost by adding up decides nothing.
	return cmp.Or(cmp.Compare(milli(r.cpu), milli(other.cpu)), cmp.Compare(r.memory, other.memory), cmp.Compare(r.disk, other.disk)) < 0
}

// settleGuests records the guests that a job was found rooms for, and returns
// their names.
func (d *differ) settleGuests(want *schema.Job) []string {
	var names []string
	index := 0
	p := d.poolOf(want.Resources.Reservation)
	for _, got := range d.chosenRooms[want.Addr] {
		host := &got.room.host
		d.growBy(p, host)
		g := store.Guest{Host: got.room.n, CPU: got.share.cpu, Memory: got.share.memory, Disk: got.share.disk}
		for ; ; index++ {
			g.Slice = guestName(want.Addr, index, host, g.Host)
			if d.next.Slices[g.Slice] == nil && d.slices[g.Slice] == nil && !slices.Contains(names, g.Slice) {
				break
			}
		}
		d.putSlice(state.Slice{Spec: guestSpec(want.Addr, index, host, g)})
		names = append(names, g.Slice)
		got.room.stays.guests = append(got.room.stays.guests, stay{by: d.occupant(p, want.Addr), share: *got.share})
		index++
		if n := slices.Index(p.free, host.Name); n >= 0 {
			p.free = slices.Delete(slices.Clone(p.free), n, n+1)
		}
	}
	p.users = ""
	delete(d.chosenRooms, want.Addr)
	return names
}

// growBy adds a slice to a pool that does not have it.
func (d *differ) growBy(p *pool, spec *schema.SliceSpec) {
	if slices.ContainsFunc(p.specs, func(has schema.SliceSpec) bool { return has.Name == spec.Name }) {
		return
	}
	p.used[spec.Index] = true
	if st, listed := d.slices[spec.Name]; listed { // recorded by nobody
		d.recordOf(st)
	} else {
		d.putSlice(state.Slice{Spec: *spec})
	}
	p.specs = append(p.specs, *spec)
	slices.SortFunc(p.specs, func(a, b schema.SliceSpec) int { return cmp.Compare(a.Index, b.Index) })
	p.room--
}
