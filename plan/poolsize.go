package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// newPool finds out which slices a reservation is to have, of those recorded as its
// own and beside them.
func (d *differ) newPool(r *schema.Reservation, recorded []string) *pool {
	held := 0
	for _, name := range recorded {
		if _, is := d.heldBy(name); is {
			held++
		}
	}
	p := &pool{of: r, bound: d.boundsOf(r, held)}
	d.keepSlices(p, recorded)
	there := make(map[string]bool, len(recorded)+len(p.specs))
	for _, name := range recorded {
		_, listed := d.slices[name]
		dropped := !listed && d.usefulness(name) == useless && d.known(&d.next.Slices[name].Spec)
		there[name] = !dropped && !d.isStuck(name)
	}
	for i := range p.specs {
		there[p.specs[i].Name] = true
	}
	p.room = p.bound.most
	for _, counts := range there {
		if counts {
			p.room--
		}
	}
	p.room = max(0, p.room)
	return p
}

// boundsOf says how many slices a reservation has while jobs hold so many of them.
func (d *differ) boundsOf(r *schema.Reservation, held int) bounds {
	expiry := expiryOf(r, d.next.Resources[r.Addr], d.now)
	if isOver(expiry, d.now) {
		return bounds{over: expiry}
	}
	if !expiry.IsZero() {
		d.wakeAt(expiry)
	}
	b := bounds{floor: r.Min.Slices, most: max(r.Min.Slices, r.Max.Slices)}
	switch r.Growth {
	case schema.GrowthOffer:
		b.floor = min(b.most, max(b.floor, held+1))
	case schema.GrowthDemand, "":
	}
	return b
}

// keepSlices chooses those to keep: what jobs hold first, then what is up, then what
// is on its way, each under the name that it has. What is not to be had counts
// only where it is needed for the least number; where that is not enough there are
// others, by names that nobody else bears.
func (d *differ) keepSlices(p *pool, recorded []string) {
	r := p.of
	staying := slices.DeleteFunc(slices.Clone(recorded), func(name string) bool { return d.poolMoves(r, name) })
	slices.SortStableFunc(staying, func(a, b string) int {
		return cmp.Or(cmp.Compare(d.usefulness(a), d.usefulness(b)), cmp.Compare(d.next.Slices[a].Spec.Index, d.next.Slices[b].Spec.Index))
	})
	p.used = make(map[int]bool, len(staying))
	for _, name := range staying {
		was := &d.next.Slices[name].Spec
		full := len(p.specs) >= p.bound.most || len(p.specs) >= p.bound.floor && d.usefulness(name) == useless
		if p.used[was.Index] || full {
			continue
		}
		spec := d.poolSlice(r, was.Index, was.Zone)
		spec.Name, spec.Cloud.Engine = name, cmp.Or(r.Cloud.Engine, was.Cloud.Engine)
		p.used[was.Index] = true
		if !d.isTaken(&spec) && !d.isStuck(name) {
			p.specs = append(p.specs, spec)
		}
	}
	for index := 0; len(p.specs) < p.bound.floor; index++ {
		if p.used[index] {
			continue
		}
		spec := d.poolSlice(r, index, d.poolZone(r, index))
		p.used[index] = true
		if !d.isTaken(&spec) && !d.isStuck(spec.Name) {
			p.specs = append(p.specs, spec)
		}
	}
	for _, name := range recorded { // what goes has its name until it is gone
		p.used[d.next.Slices[name].Spec.Index] = true
	}
	slices.SortFunc(p.specs, func(a, b schema.SliceSpec) int { return cmp.Compare(a.Index, b.Index) })
}

// usefulness ranks the recorded slices of a reservation, the best first.
func (d *differ) usefulness(name string) int {
	s := d.next.Slices[name]
	_, listed := d.slices[name]
	_, held := d.heldBy(name)
	switch {
	case held:
		return inUse
	case d.dies(name):
		return useless
	case listed, s.Seen && !d.known(&s.Spec):
		return isThere
	case !s.AskedAt.IsZero() && s.Failed == "":
		return comes
	}
	return useless
}

const (
	inUse = iota
	isThere
	comes
	useless // it dies, was refused, or was never asked for
)

// moreOf are the next n slices by which a pool may grow.
func (d *differ) moreOf(p *pool, n int) []schema.SliceSpec {
	var specs []schema.SliceSpec
	for index := 0; len(specs) < n; index++ {
		if p.used[index] {
			continue
		}
		spec := d.poolSlice(p.of, index, d.poolZone(p.of, index))
		if !d.isTaken(&spec) && !d.isStuck(spec.Name) {
			specs = append(specs, spec)
		}
	}
	return specs
}

// grow adds slices to a pool; there is room.
func (d *differ) grow(p *pool, n int) {
	for _, spec := range d.moreOf(p, n) {
		p.used[spec.Index] = true
		if st, listed := d.slices[spec.Name]; listed { // recorded by nobody
			d.recordOf(st)
		} else {
			d.putSlice(state.Slice{Spec: spec})
		}
		p.specs = append(p.specs, spec)
		p.free = append(p.free, spec.Name)
		p.room--
	}
	slices.SortFunc(p.specs, func(a, b schema.SliceSpec) int { return cmp.Compare(a.Index, b.Index) })
}

// redraw gives a job that waits for a slice of its pool one that is up and free
// instead, so that it does not wait while that idles.
func (d *differ) redraw(want *schema.Job) {
	p := d.poolOf(want.Resources.Reservation)
	if p == nil || !p.bound.over.IsZero() {
		return
	}
	for i, name := range d.next.Jobs[want.Addr].Slices {
		if len(p.free) == 0 || !d.isBorn(p.free[0]) {
			return
		}
		if d.isBorn(name) {
			continue
		}
		e := d.edit(want.Addr)
		e.Slices = slices.Clone(e.Slices)
		e.Slices[i] = p.free[0]
		d.holders[p.free[0]] = want.Addr
		p.noteWhole(p.free[0], d.occupant(p, want.Addr))
		p.free, p.users = p.free[1:], ""
		delete(d.holders, name)
		p.noteWhole(name, nil)
		if d.isKept(p, name) {
			p.free = append(p.free, name)
		}
	}
}

// isKept reports whether a slice is one of those that a pool is to have, and may
// be had.
func (d *differ) isKept(p *pool, name string) bool {
	s := d.next.Slices[name]
	_, listed := d.slices[name]
	return s != nil && (listed || s.Tries < refusals) &&
		slices.ContainsFunc(p.specs, func(spec schema.SliceSpec) bool { return spec.Name == name })
}

// hasExpired reports whether the time of a reservation is over.
func (p *Plan) hasExpired(addr schema.Address) bool {
	return slices.ContainsFunc(p.Expiries, func(e Expiry) bool { return e.Addr == addr && e.Over })
}

// expiries are when the reservations end that do.
func (d *differ) expiries() []Expiry {
	var found []Expiry
	for i := range d.desired.Reservations {
		r := &d.desired.Reservations[i]
		if at := expiryOf(r, d.next.Resources[r.Addr], d.now); !at.IsZero() {
			found = append(found, Expiry{Addr: r.Addr, At: at, Over: isOver(at, d.now)})
		}
	}
	return found
}

// restPools notes which slices of reservations idle, and releases those that have
// for long enough and are more than what is held at least. By now every job has
// what it is given in this look.
func (d *differ) restPools() {
	for i := range d.desired.Reservations {
		p := d.poolOf(d.desired.Reservations[i].Addr.Scoped())
		if r, recorded := d.next.Resources[p.of.Addr]; recorded && r.Since.IsZero() && p.of.TTL > 0 {
			r.Since = d.now // nobody knows better
			d.mutable().Resources[p.of.Addr] = r
		}
		held := 0
		for n := range p.specs {
			_, is := d.heldBy(p.specs[n].Name)
			if is {
				held++
			}
			d.noteIdle(p.specs[n].Name, !is)
		}
		p.bound = d.boundsOf(p.of, held)
		d.releaseIdle(p)
	}
	d.plan.Expiries = d.expiries()
}

// noteIdle records whether a slice is held by nobody, and since when.
func (d *differ) noteIdle(name string, idle bool) {
	s := d.next.Slices[name]
	switch {
	case s == nil || idle != s.IdleSince.IsZero():
	case idle:
		d.editSlice(name).IdleSince = d.now
	default:
		d.editSlice(name).IdleSince = time.Time{}
	}
}

// releaseIdle deletes what is too much of a pool and has idled for long enough,
// the highest index first.
func (d *differ) releaseIdle(p *pool) {
	timeout := time.Duration(cmp.Or(p.of.IdleTimeout, schema.Duration(schema.DefaultIdleTimeout)))
	for i := len(p.specs) - 1; i >= 0 && len(p.specs) > p.bound.floor; i-- {
		name := p.specs[i].Name
		s := d.next.Slices[name]
		if s == nil || s.IdleSince.IsZero() {
			continue
		}
		if due := s.IdleSince.Add(timeout); d.now.Before(due) {
			d.wakeAt(due)
			continue
		}
		d.letGo(p, name, state.CauseIdle)
	}
}

// letGo has a slice of a pool go that nobody holds.
func (d *differ) letGo(p *pool, name string, why state.Cause) {
	if st, listed := d.slices[name]; listed {
		d.remove(st, decided(why))
	} else if d.known(&d.next.Slices[name].Spec) {
		d.dropSlice(name)
	} else {
		return
	}
	p.specs = slices.DeleteFunc(p.specs, func(spec schema.SliceSpec) bool { return spec.Name == name })
	p.free = slices.DeleteFunc(slices.Clone(p.free), func(free string) bool { return free == name })
}

// whyNot says why a reservation does not keep a slice.
func (d *differ) whyNot(addr schema.Address) state.Cause {
	p := d.pooled[addr.Scoped()]
	switch {
	case p == nil:
		return state.CauseUndeclared
	case !p.bound.over.IsZero():
		return state.CauseExpired
	}
	return state.CauseUnneeded
}
