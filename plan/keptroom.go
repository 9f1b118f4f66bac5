package plan

import (
	"maps"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Room on hosts is kept for those who are ahead by taking it as if they had it, for
// the rest of one Diff; the next one finds out anew what is kept, and for whom.

// keptRooms are what is kept of a reservation.
type keptRooms struct {
	rooms []keptRoom
	whole map[string]schema.Address // slices, by who is to have them
	free  []string                  // slices that nobody has a part of but by what is kept
	// waiting is how many of those have some kept who wait for what ends some day.
	waiting int
	grown   int  // slices by which the reservation is to grow
	off     bool // given back for a moment, see giveKept
}

type keptRoom struct {
	slice string
	n     int // of its hosts
	share share
	by    schema.Address
	room  *room // nil while it is not to be had
}

// keep holds back from those behind a unit what it lacks and will be given.
func (d *differ) keep(u *unit, w *wants) {
	d.keepSums(u, w.claims)
	d.keepRooms(u, w.hosts)
}

// keepSome holds back from those behind a unit what it lacks, and will be given when
// enough has ended.
func (d *differ) keepSome(u *unit, w *wants) {
	d.keepSums(u, w.claims)
	d.keepNearest(u, w.hosts)
}

// keepRooms keeps for a unit what it will be given on hosts that are shared.
func (d *differ) keepRooms(u *unit, all []*fitting) {
	for _, f := range all {
		if l, ok := f.lay(staysOn); ok {
			f.keep(u.addr, &l)
		}
	}
}

// keepNearest keeps for a unit that has waited what it will be given when all has ended
// that ends some day: of all hosts those that lack the least already, so that the
// more has ended the less is missing.
func (d *differ) keepNearest(u *unit, all []*fitting) {
	for _, f := range all {
		t, key := &f.pool.tried, f.key()
		if t.late[key] || f.pool.keeps.waiting == keptMost {
			continue
		}
		if l, ok := f.layNearest(isMortal); ok {
			f.pool.keeps.waiting++
			f.keep(u.addr, &l)
			continue
		}
		if t.late == nil {
			t.late = map[string]bool{}
		}
		t.late[key] = true
	}
}

// keptMost is for how many of those who have waited room is kept in a reservation,
// the first ones: those behind them are the first when these have theirs, and to
// look for room for thousands would take longer than they wait.
const keptMost = 32

// keep takes what a layout says.
func (f *fitting) keep(by schema.Address, l *layout) {
	p := f.pool
	for _, name := range l.whole {
		if p.keeps.whole == nil {
			p.keeps.whole = map[string]schema.Address{}
		}
		p.keeps.whole[name] = by
	}
	for _, t := range l.rooms {
		if t.room.grown {
			continue
		}
		host := t.room.host.Name
		p.keeps.rooms = append(p.keeps.rooms, keptRoom{slice: host, n: t.room.n, share: *t.share, by: by, room: p.roomAt(host, t.room.n)})
		if k := &p.keeps.rooms[len(p.keeps.rooms)-1]; k.room != nil && !p.keeps.off {
			k.take(1)
		}
		if slices.Contains(p.free, host) && !slices.Contains(p.keeps.free, host) {
			p.keeps.free = append(p.keeps.free, host)
		}
	}
	p.keeps.grown += l.grown
	if !p.keeps.off {
		p.free = without(p.free, p.keeps.free)
		p.room -= l.grown
	}
}

// without are the names of a list that are not in another.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

func (k *keptRoom) take(n int) {
	k.room.take(&k.share, n)
	k.room.kept = k.by
}

// roomAt is that of a host, nil if it takes no guests.
func (p *pool) roomAt(slice string, n int) *room {
	for _, r := range p.rooms {
		if r.host.Name == slice && r.n == n {
			return r
		}
	}
	return nil
}

// findKept takes what is kept of rooms that were just made.
func (p *pool) findKept() {
	if len(p.keeps.rooms) == 0 {
		return
	}
	type host struct {
		slice string
		n     int
	}
	at := make(map[host]*room, len(p.rooms))
	for _, r := range p.rooms {
		at[host{r.host.Name, r.n}] = r
	}
	for i := range p.keeps.rooms {
		k := &p.keeps.rooms[i]
		if k.room = at[host{k.slice, k.n}]; k.room != nil && !p.keeps.off {
			k.take(1)
		}
	}
}

// keepsRooms reports whether something is kept of any reservation.
func (d *differ) keepsRooms() bool {
	for _, p := range d.pooled {
		if p.keeps.any() {
			return true
		}
	}
	return false
}

func (k *keptRooms) any() bool { return len(k.rooms)+len(k.whole)+k.grown > 0 }

// giveKept gives back all that is kept, for as long as a unit is placed that is not
// to be kept from it, see runsOn: others may wait for it, those who leave that room
// among them.
func (d *differ) giveKept() {
	for _, p := range d.pooled {
		k := &p.keeps
		if !k.any() {
			continue
		}
		k.off = true
		p.takeKept(-1)
		p.free = slices.Concat(p.free, k.free)
		p.room += k.grown
	}
}

// takeAllKept takes it again, but for what that unit has now.
func (d *differ) takeAllKept() {
	for _, p := range d.pooled {
		k := &p.keeps
		if !k.off {
			continue
		}
		k.off = false
		p.takeKept(1)
		k.free = without(k.free, without(k.free, p.free))
		p.free = without(p.free, k.free)
		k.grown = min(k.grown, p.room)
		p.room -= k.grown
	}
}

func (p *pool) takeKept(n int) {
	for i := range p.keeps.rooms {
		if k := &p.keeps.rooms[i]; p.rooms != nil && k.room != nil {
			k.take(n)
		}
	}
}

// isKeptWhole reports whether a room's slice is kept for one who draws it as such.
func (d *differ) isKeptWhole(r *room) bool {
	p := d.pooled[r.host.Owner.Scoped()]
	if p == nil || p.keeps.off {
		return false
	}
	_, kept := p.keeps.whole[r.host.Name]
	return kept
}

// keptFrom says for whom room is kept that a share would fit into, zero if it does
// not for another reason.
func (d *differ) keptFrom(p *pool, r *room, s *share) schema.Address {
	if d.isKeptWhole(r) {
		return p.keeps.whole[r.host.Name]
	}
	if r.kept.IsZero() || r.lacks(s).none() {
		return schema.Address{}
	}
	was := *r
	was.ports = maps.Clone(r.ports)
	for i := range p.keeps.rooms {
		if k := &p.keeps.rooms[i]; k.room == r {
			was.take(&k.share, -1)
		}
	}
	if was.lacks(s).none() {
		return r.kept
	}
	return schema.Address{}
}

// endures reports whether a job does not end by itself.
func endures(j *state.Job) bool {
	return !j.Status.Ended() && j.YieldsTo.IsZero() && !j.Stop && (j.Spec.IsService() || j.Spec.Retries.OnSuccess)
}

// endsSomeDay reports whether none of a unit's jobs endures.
func (d *differ) endsSomeDay(unit schema.Address) bool {
	if j := d.next.Jobs[unit]; j != nil {
		return !endures(j)
	}
	return !slices.ContainsFunc(d.family(unit), func(want *schema.Job) bool {
		j := d.next.Jobs[want.Addr]
		return j != nil && endures(j)
	})
}

// layNearest is lay for a day that may be far: it picks those hosts that lack the
// least of what is asked for now.
func (f *fitting) layNearest(ends func(*occupant) bool) (layout, bool) {
	if _, ok := f.lay(ends); !ok {
		return layout{}, false
	}
	now, some := f.emptied(staysOn), f.emptied(ends)
	l := layout{whole: f.nearestWhole(now, some)}
	for _, want := range f.jobs {
		need := shareOf(&want.Resources)
		for range want.Resources.Slices {
			best := -1
			for i, r := range some {
				if !r.busy && r.lacks(&need).none() && (best < 0 || now[i].missing(&need) < now[best].missing(&need)) {
					best = i
				}
			}
			if best < 0 { // by another way there was: keeping less than all helps too
				break
			}
			f.take(some[best], &need, 1)
			f.take(now[best], &need, 1)
			l.rooms = append(l.rooms, placed{some[best], &need})
		}
	}
	return l, true
}

// nearestWhole picks slices that will be free, those first that the fewest others
// have a part of now.
func (f *fitting) nearestWhole(now, some []*room) []string {
	if f.whole == 0 {
		return nil
	}
	guests, never := map[string]int{}, map[string]bool{}
	var names []string
	for i, r := range some {
		name := r.host.Name
		if r.n == 0 {
			names = append(names, name)
		}
		guests[name] += now[i].guests
		if now[i].busy {
			guests[name]++
		}
		never[name] = never[name] || r.busy || r.guests > 0
	}
	names = slices.DeleteFunc(names, func(name string) bool { return never[name] })
	slices.SortStableFunc(names, func(a, b string) int { return guests[a] - guests[b] })
	names = names[:min(f.whole, len(names))]
	for i, r := range some {
		if slices.Contains(names, r.host.Name) {
			r.busy, now[i].busy = true, true
		}
	}
	return names
}

// missing is how much a room has too little of, as a part of what is asked for: 0,
// it fits; above 1, a port is taken.
func (r *room) missing(s *share) float64 {
	var most float64
	if r.busy {
		most = 1
	}
	part := func(need, left float64) {
		if need > 0 && left < need {
			most = max(most, (need-left)/need)
		}
	}
	part(s.cpu, r.cpu)
	if r.memory >= 0 {
		part(float64(s.memory), float64(r.memory))
	}
	if r.disk >= 0 {
		part(float64(s.disk), float64(r.disk))
	}
	for _, port := range s.ports {
		if r.ports[port] > 0 {
			most++
		}
	}
	return most
}
