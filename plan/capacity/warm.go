package capacity

import (
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// WarmKind is what slices have in common that do as well for the same jobs.
type WarmKind struct {
	namespace string
	spec      schema.SliceSpec // without what tells slices apart
}

// WarmKindOf returns the kind of job that an idle slice can serve.
func WarmKindOf(namespace string, spec schema.SliceSpec) WarmKind {
	spec = spec.Fixed()
	spec.Name, spec.Owner, spec.Index = "", schema.Address{}, 0
	return WarmKind{namespace: namespace, spec: spec}
}

// IsKeptIdle reports whether a slice is kept for the next job.
func (d *Zones) IsKeptIdle(name string) bool {
	s := d.Next.Slices[name]
	return s != nil && IdlesKept(s)
}

// IdlesKept is isKeptIdle of a slice by its record.
func IdlesKept(s *state.Slice) bool {
	return !s.IdleSince.IsZero() && s.Terminating.IsZero() && s.Spec.Owner.Kind != schema.KindReservation
}

// ClaimWarm chooses up to n idle slices in a zone for a job. Those that it has chosen
// before in this look are among them.
func (d *Zones) ClaimWarm(want *schema.Job, zone string, n int) []string {
	if len(d.Warm) == 0 || want.Resources.Packed {
		return nil
	}
	all := d.Warm[WarmKindOf(want.Namespace, d.OwnSlice(want, 0, zone))]
	var chosen []string
	for _, mine := range [2]bool{true, false} {
		for _, name := range all {
			by, claimed := d.Taking[name]
			if len(chosen) == n || claimed != mine || mine && by != want.Addr || !d.IsKeptIdle(name) {
				continue
			}
			chosen = append(chosen, name)
		}
	}
	for _, name := range chosen {
		if d.Taking == nil {
			d.Taking = map[string]schema.Address{}
		}
		d.Taking[name] = want.Addr
	}
	return chosen
}

// warmSpecs are the idle slices that a job is given in a zone, as its own, and the
// indices that they have. Those that were its own keep theirs.
func (d *Zones) warmSpecs(want *schema.Job, zone string) ([]schema.SliceSpec, map[int]bool) {
	names := d.ClaimWarm(want, zone, want.Resources.Slices)
	if len(names) == 0 {
		return nil, nil
	}
	specs, used := make([]schema.SliceSpec, 0, want.Resources.Slices), map[int]bool{}
	add := func(name string, index int) {
		spec := d.OwnSlice(want, index, zone)
		spec.Name = name
		specs, used[index] = append(specs, spec), true
	}
	var others []string
	for _, name := range names {
		if s := d.Next.Slices[name]; s.Spec.Owner == want.Addr && !used[s.Spec.Index] {
			add(name, s.Spec.Index)
		} else {
			others = append(others, name)
		}
	}
	index := 0
	for _, name := range others {
		for used[index] {
			index++
		}
		add(name, index)
	}
	return specs, used
}
