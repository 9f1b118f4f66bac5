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
	"github.com/fray-ml/fray/state"
)

// PoolOf returns a declared reservation's pool, nil if there is none.
func (d *Pools) PoolOf(name string) *snapshot.Pool {
	if d.Pooled == nil {
		d.Pooled = make(map[string]*snapshot.Pool, len(d.Desired.Reservations))
		var recorded, unrecorded map[schema.Address][]string
		if len(d.Desired.Reservations) > 0 {
			recorded, unrecorded = d.PoolSlices(), unrecordedSlices(d)
		}
		for i := range d.Desired.Reservations {
			r := &d.Desired.Reservations[i]
			d.Pooled[r.Addr.Scoped()] = d.newPool(r, recorded[r.Addr], unrecorded[r.Addr])
		}
	}
	return d.Pooled[name]
}

// recordHolders notes which jobs hold slices of reservations.
func (d *Pools) recordHolders() {
	d.Holders = map[string]schema.Address{}
	if !hasPools(d) {
		return
	}
	for addr, j := range d.Next.Jobs {
		recordHolder(d, addr, j)
	}
}

// hasPools reports whether there is a reservation, declared or recorded.
func hasPools(d *Pools) bool {
	if len(d.Desired.Reservations) > 0 {
		return true
	}
	for _, r := range d.Doc.Resources {
		if r.Reservation != nil {
			return true
		}
	}
	return false
}

// updateHolders takes over what an earlier stage noted, and notes which jobs hold others by
// now: whether one holds a slice still is looked up, see HeldWhole.
func updateHolders(d *Pools, were map[string]schema.Address) {
	d.Holders = maps.Clone(were)
	if !hasPools(d) {
		return
	}
	for _, addr := range d.EditedJobs {
		if j := d.Next.Jobs[addr]; j != nil {
			recordHolder(d, addr, j)
		}
	}
}

func recordHolder(d *Pools, addr schema.Address, j *state.Job) {
	if j.Spec.Resources.Reservation == "" && len(j.Staged) == 0 {
		return
	}
	for _, names := range [2][]string{j.Slices, j.Staged} {
		for _, name := range names {
			by, held := d.HeldWhole(name)
			if !held || by == addr || generationOn(d.Next.Jobs[by], name) <= generationOn(j, name) {
				d.Holders[name] = addr
			}
		}
	}
}

// generationOn is that of a job's last attempt, 0 if a slice is no part of it. Of two jobs
// that are recorded to hold a slice that one does whose attempt there is newer: it was
// found there, and the record of the other one is older than that.
func generationOn(j *state.Job, name string) int64 {
	if last := j.Last(); last != nil && slices.Contains(last.Slices, name) {
		return last.Generation
	}
	return 0
}

// HeldBy is who uses a slice of a reservation now, or has a part of it.
func (d *Pools) HeldBy(name string) (schema.Address, bool) {
	if addr, whole := d.HeldWhole(name); whole {
		return addr, true
	}
	return d.PackedOn(name)
}

// HeldWhole is who uses a slice as a whole.
func (d *Pools) HeldWhole(name string) (schema.Address, bool) {
	addr, ok := d.Holders[name]
	if !ok {
		return addr, false
	}
	j := d.Next.Jobs[addr]
	return addr, j != nil && (slices.Contains(j.Slices, name) || slices.Contains(j.Staged, name))
}

// ByPriority are reservations, those that get capacity first at the beginning.
func ByPriority(all []schema.Reservation) []*schema.Reservation {
	ordered := make([]*schema.Reservation, 0, len(all))
	for i := range all {
		ordered = append(ordered, &all[i])
	}
	slices.SortStableFunc(ordered, func(a, b *schema.Reservation) int { return cmp.Compare(b.Priority, a.Priority) })
	return ordered
}

// FindFree lists the slices that jobs may draw. Those that are up come first,
// so that no job waits for a slice while another one idles.
func (d *Pools) FindFree(p *snapshot.Pool) {
	var later []string
	for _, spec := range p.Specs {
		s := d.Next.Slices[spec.Name]
		_, held := d.HeldBy(spec.Name)
		_, listed := d.Listed[spec.Name]
		switch {
		case held || s == nil || !listed && s.Tries >= Rejections: // cannot be had
		case d.IsBorn(spec.Name):
			p.Free = append(p.Free, spec.Name)
		default:
			later = append(later, spec.Name)
		}
	}
	p.Free = append(p.Free, later...)
}

// IsBorn reports whether a slice is there with all its hosts, and is to stay.
func (d *Pools) IsBorn(name string) bool {
	s := d.Next.Slices[name]
	st, listed := d.Listed[name]
	return listed && s != nil && !s.UpAt.IsZero() && s.Terminating.IsZero() &&
		st.Phase != schema.SliceDead && st.Phase != schema.SliceDeleting
}

// Short says what the reservations lack for a unit of jobs; grown
// are the slices by which they have to grow for it.
func (d *Pools) Short(unit []*schema.Job) (short plan.Reason, grown []schema.SliceSpec) {
	if len(unit) == 0 {
		return plan.Reason{}, nil
	}
	need := map[string]int{}
	for _, want := range unit {
		need[want.Resources.Reservation] += want.Resources.Slices
	}
	for _, name := range slices.Sorted(maps.Keys(need)) {
		p, addr := d.PoolOf(name), schema.ScopedAddress(schema.KindReservation, name)
		switch {
		case p == nil:
			return plan.Because(plan.WaitRoom, fmt.Sprintf("%s is not there", addr)), nil
		case !p.Bound.Over.IsZero():
			return plan.Because(plan.WaitRoom, p.HasExpired(addr)), nil
		case need[name] > len(p.Free)+p.Room:
			text := fmt.Sprintf("%s: needs %d of its %d slices at once, %d free%s", addr, need[name], p.Bound.Most, len(p.Free)+p.Room, d.poolUsers(p))
			return plan.Because(plan.WaitRoom, text), nil
		}
		grown = append(grown, d.moreOf(p, need[name]-len(p.Free))...)
	}
	return plan.Reason{}, grown
}

// Draw gives a job slices of its reservation; [differ.short] found enough.
func (d *Pools) Draw(want *schema.Job) []string {
	p, n := d.PoolOf(want.Resources.Reservation), want.Resources.Slices
	if n > len(p.Free) {
		d.grow(p, n-len(p.Free))
	}
	drawn := slices.Clone(p.Free[:n])
	p.Free, p.Users, d.Idles = p.Free[n:], "", nil
	for _, name := range drawn {
		d.Holders[name] = want.Addr
		p.NoteWhole(name, d.occupant(p, want.Addr))
	}
	return drawn
}

func (d *Pools) poolUsers(p *snapshot.Pool) string {
	if p.Users != "" {
		return p.Users
	}
	var users []string
	for _, spec := range p.Specs {
		if addr, held := d.HeldBy(spec.Name); held && !slices.Contains(users, addr.String()) {
			users = append(users, addr.String())
		}
	}
	if len(users) > 0 {
		p.Users = "; used by " + strings.Join(users, ", ")
	}
	return p.Users
}

// unrecordedSlices are the slices of each reservation that are listed and not recorded: a controller that did not
// live to record them asked for them, and they are there until it is confirmed that they may go.
func unrecordedSlices(d *Pools) map[schema.Address][]string {
	var found map[schema.Address][]string
	for name, st := range d.Listed {
		owner := st.Spec.Owner
		if owner.Kind != schema.KindReservation || d.Next.Slices[name] != nil {
			continue
		}
		if found == nil {
			found = map[schema.Address][]string{}
		}
		found[owner] = append(found[owner], name)
	}
	return found
}

// PoolSlices are the recorded slices of each reservation, sorted by name.
func (d *Pools) PoolSlices() map[schema.Address][]string {
	recorded := map[schema.Address][]string{}
	for name, s := range d.Next.Slices {
		if s.Spec.Owner.Kind == schema.KindReservation {
			recorded[s.Spec.Owner] = append(recorded[s.Spec.Owner], name)
		}
	}
	for _, names := range recorded {
		slices.Sort(names)
	}
	return recorded
}
