package capacity

import (
	"slices"

	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// Headroom adds the room that is held for the head of the queue.
type Headroom struct {
	*HostCapacity

	Reserved map[Bound]*Reserved // what is held, see keep
}

// NewHeadroom records who holds the slices of reservations.
// holders are of an earlier stage of the same plan, nil: there was none.
func NewHeadroom(e *snapshot.Evidence, holders map[string]schema.Address) *Headroom {
	h := &Headroom{HostCapacity: &HostCapacity{Zones: &Zones{Pools: &Pools{ZoneHealth: &ZoneHealth{Evidence: e}}}}}
	if holders == nil {
		h.recordHolders()
	} else {
		updateHolders(h.Pools, holders)
	}
	return h
}

// Reserve holds back from those behind a unit what it lacks and will be given.
func (d *Headroom) Reserve(u *Unit, w *Wants) {
	d.keepSums(u, w.Claims)
	d.keepRooms(u, w.Hosts)
}

// ReserveSome holds back from those behind a unit what it lacks, and will be given when
// enough has ended.
func (d *Headroom) ReserveSome(u *Unit, w *Wants) {
	d.keepSums(u, w.Claims)
	d.keepNearest(u, w.Hosts)
}

// keepRooms keeps for a unit what it will be given on hosts that are shared.
func (d *Headroom) keepRooms(u *Unit, all []*Fitting) {
	for _, f := range all {
		if l, ok := f.Lay(staysOn); ok {
			f.keep(u.Addr, &l)
		}
	}
}

// keepNearest keeps for a unit that has waited what it will be given when all has ended
// that ends some day: of all hosts those that lack the least already, so that the
// more has ended the less is missing.
func (d *Headroom) keepNearest(u *Unit, all []*Fitting) {
	for _, f := range all {
		t, key := &f.Pool.Tried, f.key()
		if t.Late[key] || f.Pool.Reserved.Waiting == keptMost {
			continue
		}
		if l, ok := f.layNearest(isFinite); ok {
			f.Pool.Reserved.Waiting++
			f.keep(u.Addr, &l)
			continue
		}
		if t.Late == nil {
			t.Late = map[string]bool{}
		}
		t.Late[key] = true
	}
}

// keptMost is for how many units that have waited a reservation keeps room,
// the first ones: those behind them are the first when these have theirs, and to
// look for room for thousands would take longer than they wait.
const keptMost = 32

// HasReservedHosts reports whether hosts of any reservation are reserved for a unit.
func (d *Headroom) HasReservedHosts() bool {
	for _, p := range d.Pooled {
		if p.Reserved.Any() {
			return true
		}
	}
	return false
}

// GiveReserved gives back all that is kept, for as long as a unit is placed that is not
// to be kept from it, see runsOn: others may wait for it, the occupants of that room
// among them.
func (d *Headroom) GiveReserved() {
	for _, p := range d.Pooled {
		k := &p.Reserved
		if !k.Any() {
			continue
		}
		k.Off = true
		p.TakeReserved(-1)
		p.Free = slices.Concat(p.Free, k.Free)
		p.Room += k.Grown
	}
}

// TakeAllReserved takes it again, but for what that unit has now.
func (d *Headroom) TakeAllReserved() {
	for _, p := range d.Pooled {
		k := &p.Reserved
		if !k.Off {
			continue
		}
		k.Off = false
		p.TakeReserved(1)
		k.Free = without(k.Free, without(k.Free, p.Free))
		p.Free = without(p.Free, k.Free)
		k.Grown = min(k.Grown, p.Room)
		p.Room -= k.Grown
	}
}
