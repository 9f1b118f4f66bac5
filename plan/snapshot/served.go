package snapshot

import (
	"cmp"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// takeInGuests looks at recorded guests, and at those that hosts were told of, as
// at slices that a provider lists.
func (d *Evidence) takeInGuests() {
	for _, s := range d.Doc.Slices {
		if s.Spec.On == "" {
			continue
		}
		d.noteGuest(&s.Spec)
		if s.Terminating.IsZero() && !s.AskedAt.IsZero() || d.IsServed(&s.Spec) {
			d.listGuest(s.Spec)
		}
	}
	for on, a := range d.Obs.Assignments {
		if len(a.Guests) == 0 {
			continue
		}
		host := d.hostOfGuests(on)
		for _, g := range a.Guests {
			if host != nil && d.Doc.Slices[g.Slice] == nil {
				spec := PackedSpec(g.Owner, g.Index, host, g)
				d.listGuest(spec)
				d.UnrecordedPacked = append(d.UnrecordedPacked, spec)
			}
		}
	}
	slices.SortFunc(d.UnrecordedPacked, func(a, b schema.SliceSpec) int { return cmp.Compare(a.Name, b.Name) })
}

// hostOfGuests is the spec of a slice that is there, or may be.
func (d *Evidence) hostOfGuests(name string) *schema.SliceSpec {
	if st, listed := d.Listed[name]; listed {
		return &st.Spec
	}
	if s := d.Doc.Slices[name]; s != nil && !d.Known(&s.Spec) {
		return &s.Spec
	}
	return nil
}

// RecordPacked records those that only their hosts were told of: whoever told them
// did not live to save the state.
func (d *Evidence) RecordPacked() {
	for _, spec := range d.UnrecordedPacked {
		d.PutSlice(state.Slice{Spec: spec, AskedAt: d.Now, Seen: true})
	}
}

// PackedSpec is the spec of a guest as a host is told of it.
func PackedSpec(owner schema.Address, index int, host *schema.SliceSpec, g state.Guest) schema.SliceSpec {
	return schema.SliceSpec{
		Name: g.Slice, Stack: host.Stack, Owner: owner, Index: index, Provider: host.Provider,
		CPU: g.CPU, Memory: g.Memory, Disk: g.Disk, Preemptible: host.Preemptible, Hosts: 1,
		On: host.Name, OnHost: g.Host,
	}
}

// listGuest has a guest be there as long as its host's slice is.
func (d *Evidence) listGuest(spec schema.SliceSpec) {
	host, listed := d.Listed[spec.On]
	if !listed {
		return
	}
	d.Listed[spec.Name] = PackedStatus(spec, host)
}

// PackedStatus returns the status of a packed slice on its host.
func PackedStatus(spec schema.SliceSpec, host *schema.SliceStatus) *schema.SliceStatus {
	st := &schema.SliceStatus{Spec: spec, Phase: schema.SliceReady, CreatedAt: host.CreatedAt}
	if host.Phase == schema.SliceDead || host.Phase == schema.SliceDeleting {
		st.Phase, st.Reason, st.Cause = host.Phase, host.Reason, host.Cause
	}
	return st
}

// IsServed reports whether a host is to serve a guest, or says that it does.
func (d *Evidence) IsServed(spec *schema.SliceSpec) bool {
	return d.lodgings().told[lodging{on: spec.On, guest: spec.Name}] || d.IsReportedServed(spec)
}

// IsReportedServed reports whether a host says that it serves a guest.
func (d *Evidence) IsReportedServed(spec *schema.SliceSpec) bool {
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

func (d *Evidence) lodgings() *lodgings {
	if d.lodged != nil {
		return d.lodged
	}
	l := &lodgings{told: map[lodging]bool{}, said: map[lodging]bool{}}
	d.lodged = l
	for on, a := range d.Obs.Assignments {
		for i := range a.Guests {
			l.told[lodging{on: on, guest: a.Guests[i].Slice}] = true
		}
	}
	for on, hosts := range d.Obs.Hosts {
		for i := range hosts {
			h := &hosts[i]
			if len(h.Guests) == 0 || d.Host(on, h.Host) != h { // of two reports the first counts
				continue
			}
			for _, guest := range h.Guests {
				l.said[lodging{on: on, host: h.Host, guest: guest}] = true
			}
		}
	}
	return l
}
