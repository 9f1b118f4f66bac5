package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// A guest is a slice that lives on a host of another one, of which it has a part:
// a packed job has one for each of its tasks. No provider knows of it. It is there
// once it is recorded and its host was asked to serve it (AskedAt), and it is gone
// once it is given up (Terminating) and its host neither is to serve it nor says that
// it does; with its host's slice it dies. All else is as with any slice: it has an
// assignment and a report, and attempts run on it.
//
// guest.go is the life of one, guestroom.go where it goes, guesthost.go the hosts.

// guestName is the name of an owner's index-th guest on a host: on another one it
// has another name, so that what is left of it there is never taken for it.
func guestName(owner schema.Address, index int, host *schema.SliceSpec, n int) string {
	return sliceNameIn(fmt.Sprintf("%s/%d", host.Name, n), host.Stack, owner, index)
}

// drawsWhole reports whether a job has whole slices of a reservation.
func drawsWhole(r *schema.Resources) bool { return r.Reservation != "" && !r.Packed }

// takeInGuests looks at recorded guests, and at those that hosts were told of, as
// at slices that a provider lists.
func (d *differ) takeInGuests() {
	for _, s := range d.doc.Slices {
		if s.Spec.On == "" {
			continue
		}
		d.noteGuest(&s.Spec)
		if s.Terminating.IsZero() && !s.AskedAt.IsZero() || d.isServed(&s.Spec) {
			d.listGuest(s.Spec)
		}
	}
	for on, a := range d.obs.Assignments {
		if len(a.Guests) == 0 {
			continue
		}
		host := d.hostOfGuests(on)
		for _, g := range a.Guests {
			if host != nil && d.doc.Slices[g.Slice] == nil {
				spec := guestSpec(g.Owner, g.Index, host, g)
				d.listGuest(spec)
				d.unknownGuests = append(d.unknownGuests, spec)
			}
		}
	}
	slices.SortFunc(d.unknownGuests, func(a, b schema.SliceSpec) int { return cmp.Compare(a.Name, b.Name) })
}

// hostOfGuests is the spec of a slice that is there, or may be.
func (d *differ) hostOfGuests(name string) *schema.SliceSpec {
	if st, listed := d.slices[name]; listed {
		return &st.Spec
	}
	if s := d.doc.Slices[name]; s != nil && !d.known(&s.Spec) {
		return &s.Spec
	}
	return nil
}

// recordGuests records those that only their hosts were told of: whoever told them
// did not live to save the state.
func (d *differ) recordGuests() {
	for _, spec := range d.unknownGuests {
		d.putSlice(state.Slice{Spec: spec, AskedAt: d.now, Seen: true})
	}
}

// guestSpec is the spec of a guest as a host is told of it.
func guestSpec(owner schema.Address, index int, host *schema.SliceSpec, g store.Guest) schema.SliceSpec {
	return schema.SliceSpec{
		Name: g.Slice, Stack: host.Stack, Owner: owner, Index: index, Provider: host.Provider,
		CPU: g.CPU, Memory: g.Memory, Disk: g.Disk, Preemptible: host.Preemptible, Hosts: 1,
		On: host.Name, OnHost: g.Host,
	}
}

// ListedGuests are the guests that the hosts of listed slices are to serve, as if a
// provider listed them.
func ListedGuests(obs *Observed, listed map[string]*schema.SliceStatus) []*schema.SliceStatus {
	var found []*schema.SliceStatus
	for on, host := range listed {
		for _, g := range obs.Assignments[on].Guests {
			found = append(found, guestStatus(guestSpec(g.Owner, g.Index, &host.Spec, g), host))
		}
	}
	return found
}

// listGuest has a guest be there as long as its host's slice is.
func (d *differ) listGuest(spec schema.SliceSpec) {
	host, listed := d.slices[spec.On]
	if !listed {
		return
	}
	d.slices[spec.Name] = guestStatus(spec, host)
}

func guestStatus(spec schema.SliceSpec, host *schema.SliceStatus) *schema.SliceStatus {
	st := &schema.SliceStatus{Spec: spec, Phase: schema.SliceReady, CreatedAt: host.CreatedAt}
	if host.Phase == schema.SliceDead || host.Phase == schema.SliceDeleting {
		st.Phase, st.Reason, st.Cause = host.Phase, host.Reason, host.Cause
	}
	return st
}

// isServed reports whether a host is to serve a guest, or says that it does.
func (d *differ) isServed(spec *schema.SliceSpec) bool {
	return d.lodgings().told[lodging{on: spec.On, guest: spec.Name}] || d.saysServed(spec)
}

// saysServed reports whether a host says that it serves a guest.
func (d *differ) saysServed(spec *schema.SliceSpec) bool {
	return d.lodgings().said[lodging{on: spec.On, host: spec.OnHost, guest: spec.Name}]
}

// lodging is a guest on a slice, or on a host of it.
type lodging struct {
	on    string
	host  int
	guest string
}

// lodgings are those that hosts are told to serve, by slice, and those of which
// hosts say that they do, by host.
type lodgings struct{ told, said map[lodging]bool }

func (d *differ) lodgings() *lodgings {
	if d.lodged != nil {
		return d.lodged
	}
	l := &lodgings{told: map[lodging]bool{}, said: map[lodging]bool{}}
	d.lodged = l
	for on, a := range d.obs.Assignments {
		for i := range a.Guests {
			l.told[lodging{on: on, guest: a.Guests[i].Slice}] = true
		}
	}
	for on, hosts := range d.obs.Hosts {
		for i := range hosts {
			h := &hosts[i]
			if len(h.Guests) == 0 || d.host(on, h.Host) != h { // of two reports the first counts
				continue
			}
			for _, guest := range h.Guests {
				l.said[lodging{on: on, host: h.Host, guest: guest}] = true
			}
		}
	}
	return l
}

// noteGuest notes where a recorded guest lives.
func (d *differ) noteGuest(spec *schema.SliceSpec) {
	if d.guests == nil {
		d.guests = map[string][]string{}
	}
	if n, noted := slices.BinarySearch(d.guests[spec.On], spec.Name); !noted {
		d.guests[spec.On] = slices.Insert(d.guests[spec.On], n, spec.Name)
	}
}

// leftGuest notes that a guest is recorded no more.
func (d *differ) leftGuest(spec *schema.SliceSpec) {
	if n, noted := slices.BinarySearch(d.guests[spec.On], spec.Name); noted {
		d.guests[spec.On] = slices.Delete(d.guests[spec.On], n, n+1)
	}
	if host := d.next.Slices[spec.On]; host != nil {
		if p := d.pooled[host.Spec.Owner.Scoped()]; p != nil { // one has more room now
			p.rooms, p.full = nil, nil
		}
	}
}

// guestDrift takes in what became of a recorded guest; it reports false for
// another slice. What happened to its host is that one's story.
func (d *differ) guestDrift(s *state.Slice, listed bool) bool {
	if s.Spec.On == "" {
		return false
	}
	if !listed && s.Seen && d.known(&s.Spec) {
		d.terminate(s.Spec.Name, state.Termination{Cause: state.CauseHostGone, Text: "slice " + s.Spec.On + ", on which it was, is gone"})
	}
	return true
}

// bringUpGuest is bringUp for a guest.
func (d *differ) bringUpGuest(spec schema.SliceSpec) reason {
	if why := d.bringUpHost(spec.On); !why.none() {
		return why
	}
	name := spec.Name
	s := d.next.Slices[name]
	if s.AskedAt.IsZero() {
		return d.askHost(s)
	}
	st, listed := d.slices[name]
	h := d.host(name, 0)
	if !listed || h == nil || h.Address == "" || !d.saysServed(&spec) {
		return d.slowGuest(s)
	}
	if s.BornAt.IsZero() {
		d.editSlice(name).BornAt = d.now
	}
	return d.emptied(st)
}

// askHost has a host be told of a guest, once nothing is left of a former one of
// that name.
func (d *differ) askHost(s *state.Slice) reason {
	name := s.Spec.Name
	switch {
	case d.isServed(&s.Spec):
		return underway("what is left of the old slice " + name + " is being cleared away")
	case d.hasMailbox(name):
		d.forget(name, s.Spec.Owner)
		return underway("what is left of the old slice " + name + " is being cleared away")
	}
	d.editSlice(name).AskedAt = d.now
	return d.hostIsTold(&s.Spec)
}

func (d *differ) hostIsTold(spec *schema.SliceSpec) reason {
	return underway(fmt.Sprintf("host %d of slice %s is making room", spec.OnHost, spec.On))
}

// slowGuest waits for a host to serve a guest, as long as machines may take to boot.
func (d *differ) slowGuest(s *state.Slice) reason {
	deadline := s.AskedAt.Add(bootTimeout)
	if d.now.Before(deadline) {
		d.wakeAt(deadline)
		return d.hostIsTold(&s.Spec)
	}
	why := fmt.Sprintf("host %d of slice %s did not make room in time", s.Spec.OnHost, s.Spec.On)
	d.terminate(s.Spec.Name, state.Termination{Cause: state.CauseBoot, Text: why})
	return because(WaitRetry, why)
}

// vacate takes a job that does not run out of all its rooms if it cannot go on in
// one of them: it is placed whole.
func (d *differ) vacate(want *schema.Job) {
	j := d.next.Jobs[want.Addr]
	for _, name := range j.Slices {
		if d.cannotStay(want, name).none() {
			continue
		}
		for _, held := range j.Slices {
			if s := d.next.Slices[held]; s != nil && d.slices[held] == nil && d.known(&s.Spec) {
				d.dropSlice(held)
			} else {
				d.terminate(held, decided(state.CausePlacedAgain))
			}
		}
		d.edit(want.Addr).Slices = nil
		d.tally(want.Addr)
		return
	}
}

// cannotStay says why a job cannot run on a guest that it holds, nothing if it can.
func (d *differ) cannotStay(want *schema.Job, name string) reason {
	s := d.next.Slices[name]
	if s == nil || s.Spec.On == "" {
		return because(WaitRoom, "slice "+name+" is not to be had any more")
	}
	if !s.Terminating.IsZero() {
		return because(WaitRoom, fmt.Sprintf("slice %s is being given up: %s", name, s.Terminating.Text))
	}
	if _, listed := d.slices[s.Spec.On]; !listed && !d.known(&s.Spec) {
		return reason{} // nothing may be concluded
	}
	if d.isCrowdedOut(&s.Spec) {
		return because(WaitRoom, fmt.Sprintf("slice %s has no room for it any more", s.Spec.On))
	}
	if p := d.poolOf(want.Resources.Reservation); p != nil {
		for i := range p.specs {
			if p.specs[i].Name == s.Spec.On {
				return d.closed(&p.specs[i])
			}
		}
	}
	return because(WaitRoom, fmt.Sprintf("slice %s is not to be kept", s.Spec.On))
}

// guestSpecOf is the spec of a guest that a job holds, false if it cannot stay there.
func (d *differ) guestSpecOf(want *schema.Job, name string) (schema.SliceSpec, bool) {
	s := d.next.Slices[name]
	if s == nil || !d.cannotStay(want, name).none() {
		return schema.SliceSpec{}, false
	}
	return s.Spec, true
}
