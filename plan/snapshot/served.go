package snapshot

import (
	"cmp"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// notePackedTasks takes in recorded packed slices, and those that are assigned to hosts, as
// at slices that a provider lists.
func (d *Evidence) notePackedTasks() {
	for _, s := range d.Doc.Slices {
		if s.Spec.On == "" {
			continue
		}
		d.notePacked(&s.Spec)
		if s.Terminating.IsZero() && !s.PendingSince.IsZero() || d.IsServed(&s.Spec) {
			d.listPacked(s.Spec)
		}
	}
	for on, a := range d.Obs.Assignments {
		if len(a.PackedTasks) == 0 {
			continue
		}
		host := d.packedHost(on)
		for _, g := range a.PackedTasks {
			if host != nil && d.Doc.Slices[g.Slice] == nil {
				spec := PackedSpec(g.Owner, g.Index, host, g)
				d.listPacked(spec)
				d.UnrecordedPacked = append(d.UnrecordedPacked, spec)
			}
		}
	}
	slices.SortFunc(d.UnrecordedPacked, func(a, b schema.SliceSpec) int { return cmp.Compare(a.Name, b.Name) })
}

// packedHost is the spec of a slice that is there, or may be.
func (d *Evidence) packedHost(name string) *schema.SliceSpec {
	if st, listed := d.Listed[name]; listed {
		return &st.Spec
	}
	if s := d.Doc.Slices[name]; s != nil && !d.Known(&s.Spec) {
		return &s.Spec
	}
	return nil
}

// RecordPacked records those that are only in assignments: the controller that wrote these
// did not live to save the state.
func (d *Evidence) RecordPacked() {
	for _, spec := range d.UnrecordedPacked {
		d.PutSlice(state.Slice{Spec: spec, PendingSince: d.Now, Listed: true})
	}
}

// PackedSpec is the spec of a packed slice as it is assigned to a host.
func PackedSpec(owner schema.Address, index int, host *schema.SliceSpec, g state.PackedTask) schema.SliceSpec {
	return schema.SliceSpec{
		Name: g.Slice, Stack: host.Stack, Owner: owner, Index: index, Provider: host.Provider,
		CPU: g.CPU, Memory: g.Memory, Disk: g.Disk, Preemptible: host.Preemptible, Hosts: 1,
		On: host.Name, OnHost: g.Host,
	}
}

// listPacked lists a packed slice as long as its host's slice is there.
func (d *Evidence) listPacked(spec schema.SliceSpec) {
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

// IsServed reports whether a host is to serve a packed slice, or reports that it does.
func (d *Evidence) IsServed(spec *schema.SliceSpec) bool {
	return d.placements().assigned[placement{on: spec.On, packed: spec.Name}] || d.IsReportedServed(spec)
}

// IsReportedServed reports whether a host reports that it serves a packed slice.
func (d *Evidence) IsReportedServed(spec *schema.SliceSpec) bool {
	return d.placements().reported[placement{on: spec.On, host: spec.OnHost, packed: spec.Name}]
}

// IsReportedAnywhere reports whether any host of a slice that is there, or recorded, reports
// that it serves a packed slice of a name.
func (d *Evidence) IsReportedAnywhere(name string) bool { return d.placements().names[name] }

// placement is a packed slice on a slice, or on a host of it.
type placement struct {
	on     string
	host   int
	packed string
}

// placements are those that hosts are assigned to serve, by slice, and those that
// hosts report to serve, by host and by name.
type placements struct {
	assigned, reported map[placement]bool
	names              map[string]bool
}

func (d *Evidence) placements() *placements {
	if d.seenPlacements != nil {
		return d.seenPlacements
	}
	l := &placements{assigned: map[placement]bool{}, reported: map[placement]bool{}, names: map[string]bool{}}
	d.seenPlacements = l
	for on, a := range d.Obs.Assignments {
		for i := range a.PackedTasks {
			l.assigned[placement{on: on, packed: a.PackedTasks[i].Slice}] = true
		}
	}
	for on, hosts := range d.Obs.Hosts {
		for i := range hosts {
			h := &hosts[i]
			if len(h.PackedTasks) == 0 || d.Host(on, h.Host) != h { // of two reports the first counts
				continue
			}
			for _, packed := range h.PackedTasks {
				l.reported[placement{on: on, host: h.Host, packed: packed}] = true
				if d.Listed[on] != nil || d.Next.Slices[on] != nil {
					l.names[packed] = true
				}
			}
		}
	}
	return l
}
