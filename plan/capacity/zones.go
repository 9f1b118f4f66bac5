package capacity

import (
	"cmp"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Zones adds the zones of jobs and pools, and the slices that idle for the next job.
type Zones struct {
	*Pools

	Leaving map[schema.Address]bool   // jobs that are declared no more
	Chosen  map[schema.Address]Place  // chosen for what is being placed
	Warm    map[WarmKind][]string     // slices that idle for the next job of their kind
	Taking  map[string]schema.Address // of those: by whom they are chosen, by name
}

// NewOf is what of the slices takes more of a provider than it holds already.
func (d *Zones) NewOf(provider schema.ProviderName, specs []schema.SliceSpec) plan.Amount {
	var need plan.Amount
	for n := range specs {
		spec := &specs[n]
		if spec.Provider != provider || spec.On != "" || d.Next.Slices[spec.Name] != nil {
			continue
		}
		if _, listed := d.Listed[spec.Name]; !listed {
			need = need.Plus(d.AmountOf(spec))
		}
	}
	return need
}

// FreshSlices are the specs of the slices that a job without any is given: idle ones
// that do as well as new ones, then the first ones named after it whose names
// no other slice bears.
func (d *Zones) FreshSlices(want *schema.Job) []schema.SliceSpec {
	zone := d.Chosen[want.Addr].Zone
	want = d.Asked(want)
	specs, used := d.warmSpecs(want, zone)
	for index := 0; len(specs) < want.Resources.Slices; index++ {
		if used[index] {
			continue
		}
		spec := d.OwnSlice(want, index, zone)
		if !d.IsTaken(&spec) && !d.IsStuck(spec.Name) && !d.IsKeptIdle(spec.Name) {
			specs = append(specs, spec)
		}
	}
	slices.SortFunc(specs, func(a, b schema.SliceSpec) int { return cmp.Compare(a.Index, b.Index) })
	return specs
}

// HeldSlice is the spec of a slice that a job holds as its i-th; false if it is
// not there to be had any more.
func (d *Zones) HeldSlice(want *schema.Job, i int, name string) (schema.SliceSpec, bool) {
	s := d.Next.Slices[name]
	if s == nil {
		spec := plan.OwnSlice(d.Stack, d.Running(want), i)
		return spec, spec.Name == name && !d.IsUnmanaged(name)
	}
	held := want.Resources.Accelerator()
	if a := s.Spec.Accelerator(); want.Resources.IsAlternative(a) {
		held = a
	}
	spec := plan.UnnamedSlice(d.Stack, want.As(held), s.Spec.Index)
	spec.Name, spec.Zone = name, s.Spec.Zone
	spec.Cloud.Engine = cmp.Or(want.Resources.Cloud.Engine, s.Spec.Cloud.Engine) // what it was made by
	return spec, !d.IsUnmanaged(name)
}

// SpecHeld is the spec of a slice that a job holds, with no more than the provider
// where the slice has no record.
func (d *Zones) SpecHeld(name string, j *state.Job) *schema.SliceSpec {
	if s := d.Next.Slices[name]; s != nil {
		return &s.Spec
	}
	return &schema.SliceSpec{Name: name, Provider: cmp.Or(j.Spec.Resources.Provider, schema.ProviderLocal)}
}

// Record puts slices into the state that are not there, and returns their names.
func (d *Zones) Record(specs []schema.SliceSpec) []string {
	names := make([]string, 0, len(specs))
	for _, spec := range specs {
		names = append(names, spec.Name)
		if st, listed := d.Listed[spec.Name]; listed {
			d.RecordOf(st)
		} else if d.Next.Slices[spec.Name] == nil {
			d.PutSlice(state.Slice{Spec: spec})
		}
		d.TakeUp(&spec)
	}
	return names
}

// leavesZone reports whether by a decision about its slices a job is not to have
// them again in the zone where they are.
func leavesZone(decision state.Cause) bool {
	switch decision {
	case state.CauseMoved, state.CauseNotPlaced, state.CauseReplaced:
		return true
	case state.CauseNone, state.CausePreempted, state.CauseHostBad, state.CauseNotice, state.CauseDead, state.CauseHostLost,
		state.CauseHostGone, state.CauseBoot, state.CauseQueue, state.CauseIdleUnwell, state.CauseUnknown, state.CauseJobRemoved,
		state.CauseUndeclared, state.CauseExpired, state.CauseStopped, state.CauseEnded, state.CauseBudget, state.CauseYielded, state.CauseMakesRoom,
		state.CauseIdle, state.CausePlacedAgain, state.CauseReshaped, state.CauseUnneeded, state.CauseUnused:
	}
	return false
}
