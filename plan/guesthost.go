package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// guestOn is the owner of a guest that a slice has, if it has one: until the last
// is gone, nobody else can have the slice.
func (d *differ) guestOn(name string) (schema.Address, bool) {
	for _, guest := range d.guests[name] {
		if s := d.next.Slices[guest]; s != nil {
			return s.Spec.Owner, true
		}
	}
	return schema.Address{}, false
}

// bringUpHost brings up the slice that a guest is to live on, once in a Diff.
func (d *differ) bringUpHost(name string) reason {
	if why, done := d.hosting[name]; done {
		return why
	}
	if d.hosting == nil {
		d.hosting = map[string]reason{}
	}
	s := d.next.Slices[name]
	if s == nil {
		return because(WaitRoom, "slice "+name+" is not to be had any more")
	}
	spec := s.Spec
	if p := d.poolOf(spec.Owner.Scoped()); p != nil {
		if n := slices.IndexFunc(p.specs, func(of schema.SliceSpec) bool { return of.Name == name }); n >= 0 {
			spec = p.specs[n]
		}
	}
	d.hosting[name] = d.bringUp(spec)
	return d.hosting[name]
}

// closed says why a slice of a pool takes no guests, nothing if it does, now or when it
// is up.
func (d *differ) closed(spec *schema.SliceSpec) reason {
	name := spec.Name
	s, st := d.next.Slices[name], d.slices[name]
	switch {
	case s == nil:
		return because(WaitRoom, fmt.Sprintf("slice %s is not there", name))
	case !s.Terminating.IsZero():
		return because(WaitRoom, fmt.Sprintf("slice %s is being deleted: %s", name, s.Terminating.Text))
	case st == nil && s.Tries >= refusals:
		return because(WaitRoom, fmt.Sprintf("slice %s cannot be had: %s", name, s.Error))
	case st == nil && s.Seen && !d.known(&s.Spec) && s.Spec.Fixed() != spec.Fixed():
		return because(WaitRoom, fmt.Sprintf("slice %s has another shape", name))
	case st == nil:
		return reason{}
	case st.Phase == schema.SliceDead || st.Phase == schema.SliceDeleting:
		return because(WaitRoom, fmt.Sprintf("slice %s is %s", name, st.Phase))
	case st.Spec.Fixed() != spec.Fixed():
		return because(WaitRoom, fmt.Sprintf("slice %s has another shape", name))
	}
	for _, h := range d.obs.Hosts[name] {
		if h.Notice != "" {
			return because(WaitRoom, fmt.Sprintf("host %d of slice %s has notice: %s", h.Host, name, h.Notice))
		}
	}
	return reason{}
}

// attend sees to the slices that have guests or had some: those that are lost
// under them, and what their hosts are told.
func (d *differ) attend() {
	names := slices.Collect(maps.Keys(d.guests))
	for name, a := range d.obs.Assignments {
		if len(a.Guests) > 0 && len(d.guests[name]) == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		st, listed := d.slices[name]
		if !listed {
			continue
		}
		if _, held := d.guestOn(name); held {
			d.attendHost(st)
		}
		d.tellHost(name)
	}
}

// attendHost deletes a slice that is lost and has hosts started that are down.
// Nobody else does, since its guests hold it.
func (d *differ) attendHost(st *schema.SliceStatus) {
	s := d.recordOf(st)
	switch {
	case st.Phase == schema.SliceDead:
		d.remove(st, d.died(st))
	case !s.Terminating.IsZero() || st.Phase == schema.SliceDeleting:
		d.remove(st, state.Termination{})
	default:
		if lost := d.lostHost(st); !lost.IsZero() {
			d.remove(st, lost)
		} else if len(st.Down) > 0 {
			d.mend(st)
		}
	}
}

// tellHost has the hosts of a slice serve the guests that are recorded. The
// generation stays: nothing else that runs there is touched.
func (d *differ) tellHost(name string) {
	guests := d.guestsTold(name)
	cur := d.obs.Assignments[name]
	same := slices.Equal(guests, cur.Guests)
	takes := !same && slices.ContainsFunc(cur.Guests, func(g store.Guest) bool { return !slices.Contains(guests, g) })
	if i, acting := d.acting[name]; acting {
		if a := &d.plan.Actions[i]; a.Verb == Assign {
			a.Assignment.Guests, a.AfterSave = guests, a.AfterSave || takes
		}
		return
	}
	if _, damaged := d.obs.Damaged[name]; same || damaged {
		return // what is damaged is written anew with what runs there
	}
	d.act(Action{
		Verb: Assign, Addr: d.changedGuest(guests, cur.Guests), Slice: schema.SliceSpec{Name: name},
		Object: cur.Object, AfterSave: takes,
		Assignment: &store.Assignment{Slice: name, Stack: d.stack, Generation: cur.Generation, Run: cur.Run, Why: cur.Why, Guests: guests},
	})
}

// guestsTold are the guests that a slice's hosts are to serve, sorted by name. One
// that is not served yet waits until it fits beside those that are: what was decided
// about them may have been lost with the state's last write.
func (d *differ) guestsTold(name string) []store.Guest {
	var told []store.Guest
	rooms := map[int]*room{}
	for _, guest := range d.guests[name] {
		s := d.next.Slices[guest]
		if s == nil || !s.Terminating.IsZero() || s.AskedAt.IsZero() {
			continue
		}
		if !d.isServed(&s.Spec) {
			n := s.Spec.OnHost
			if rooms[n] == nil {
				rooms[n] = d.roomLeft(name, n)
			}
			need := d.shareOfGuest(&s.Spec)
			if !rooms[n].lacks(&need).none() {
				continue
			}
			rooms[n].take(&need, 1)
		}
		told = append(told, store.Guest{
			Slice: guest, Host: s.Spec.OnHost, Owner: s.Spec.Owner, Index: s.Spec.Index,
			CPU: s.Spec.CPU, Memory: s.Spec.Memory, Disk: s.Spec.Disk,
		})
	}
	return told
}

// roomLeft is what a host of a listed slice has beside the guests that it serves.
func (d *differ) roomLeft(name string, n int) *room {
	r := emptyRoom(d.slices[name].Spec, n)
	for _, guest := range d.guests[name] {
		if s := d.next.Slices[guest]; s != nil && s.Spec.OnHost == n && d.isServed(&s.Spec) {
			taken := d.shareOfGuest(&s.Spec)
			r.take(&taken, 1)
		}
	}
	return r
}

// isCrowdedOut reports whether a guest that is not served yet has no room beside
// those that are.
func (d *differ) isCrowdedOut(spec *schema.SliceSpec) bool {
	if _, listed := d.slices[spec.On]; !listed || d.isServed(spec) {
		return false
	}
	need := d.shareOfGuest(spec)
	return !d.roomLeft(spec.On, spec.OnHost).lacks(&need).none()
}

// changedGuest is the owner of the first guest that is new, or else of the first
// that leaves.
func (d *differ) changedGuest(is, was []store.Guest) schema.Address {
	for _, lists := range [2][2][]store.Guest{{is, was}, {was, is}} {
		for _, g := range lists[0] {
			if !slices.Contains(lists[1], g) {
				return g.Owner
			}
		}
	}
	return schema.Address{}
}
