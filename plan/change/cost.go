package change

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// CostTotal sums up the costs of a plan.
type CostTotal struct {
	Before accelerators.Price // an hour
	After  accelerators.Price
	// UnknownBefore and UnknownAfter are slices whose prices are not known; they
	// are in neither sum.
	UnknownBefore int
	UnknownAfter  int
}

// costKind is what slices of one Cost have in common.
type costKind struct {
	provider    schema.ProviderName
	zone        string
	name        string
	preemptible bool
	others      string // alternatives of the owner
}

// Costs estimates what the plan's slices cost, by provider, zone and type, in
// that order: before it those that the inventories list, after it those that are
// declared. What is dead costs nothing, unmanaged slices go on
// costing. The provider local is free and left out. A slice whose zone is not
// decided yet is taken to come up in the first that it may.
func Costs(desired *schema.Desired, p *plan.Plan, obs *plan.Observed) []plan.Cost {
	s := costSums{desired: desired, plan: p, kinds: map[costKind]*plan.Cost{}, made: map[schema.Address][]*schema.SliceSpec{}, choices: choicesOf(desired)}
	s.before(obs)
	for _, kept := range p.Next.Slices {
		switch owner := kept.Spec.Owner; {
		case !kept.Terminating.IsZero() || kept.Spec.On != "":
		case isFree(kept.Spec.Provider) && owner.Kind != schema.KindReservation: // of a reservation they are counted
		case !kept.IdleSince.IsZero() && owner.Kind != schema.KindReservation: // kept for the next job
			s.count(&kept.Spec, 1)
		default:
			s.made[owner] = append(s.made[owner], &kept.Spec)
		}
	}
	for i := range desired.Reservations {
		r := &desired.Reservations[i]
		if !p.HasExpired(r.Addr) {
			s.after(s.located(plan.PoolSlice("", r, 0), r.Zones, r.Regions), max(r.Min.Slices, len(s.made[r.Addr])))
		}
	}
	for i := range desired.Jobs {
		want := &desired.Jobs[i]
		r := &want.Resources
		if isFree(r.Provider) {
			continue
		}
		if j := p.Next.Jobs[want.Addr]; r.Reservation != "" || j != nil && j.Status.Ended() {
			continue
		}
		s.after(s.ownSlice(s.chosen(want)), r.Slices)
	}
	kinds := slices.SortedFunc(maps.Keys(s.kinds), costKind.compare)
	costs := make([]plan.Cost, 0, len(kinds))
	for _, k := range kinds {
		costs = append(costs, *s.kinds[k])
	}
	return costs
}

func (k costKind) compare(other costKind) int {
	free := func(preemptible bool) int {
		if preemptible {
			return 1
		}
		return 0
	}
	return cmp.Or(strings.Compare(string(k.provider), string(other.provider)), strings.Compare(k.zone, other.zone),
		strings.Compare(k.name, other.name), cmp.Compare(free(k.preemptible), free(other.preemptible)), strings.Compare(k.others, other.others))
}

// costSums adds slices to their kinds.
type costSums struct {
	desired *schema.Desired
	plan    *plan.Plan
	kinds   map[costKind]*plan.Cost
	made    map[schema.Address][]*schema.SliceSpec // recorded and to stay, by owner
	choices map[schema.Address]*schema.Job         // jobs with alternatives
}

// before counts what is there. Unmanaged slices are there afterwards too.
func (s *costSums) before(obs *plan.Observed) {
	stack := s.plan.Next.Stack()
	for _, inv := range obs.Inventories {
		for i := range inv.Slices {
			st := &inv.Slices[i]
			if st.Spec.Stack != stack || st.Phase == schema.SliceDead {
				continue
			}
			cost := s.of(&st.Spec)
			if cost == nil {
				continue
			}
			cost.Before.Add(&st.Spec, cost.PerSliceHour, 1)
			if _, unmanaged := s.plan.Next.Unmanaged[st.Spec.Name]; unmanaged {
				cost.After.Add(&st.Spec, cost.PerSliceHour, 1)
			}
		}
	}
}

// located is a slice in the first zone that it may be in, by the zones and
// regions that its owner states.
func (s *costSums) located(spec schema.SliceSpec, zones, regions []string) schema.SliceSpec {
	if p := s.provider(spec.Provider); p != nil {
		if may := accelerators.CandidateZones(p, spec.Kind(), zones, regions); len(may) > 0 {
			spec.Zone = may[0]
		}
	}
	return spec
}

// after counts n slices of an owner like one: those that are recorded where they
// are, the others where they are tried first.
func (s *costSums) after(like schema.SliceSpec, n int) {
	for _, made := range s.made[like.Owner] {
		if n > 0 && made.Zone != "" && sameKind(made, &like) {
			s.count(made, 1)
			n--
		}
	}
	s.count(&like, n)
}

func (s *costSums) count(spec *schema.SliceSpec, n int) {
	if n == 0 {
		return
	}
	if cost := s.of(spec); cost != nil {
		cost.After.Add(spec, cost.PerSliceHour, n)
	}
}

// isFree reports whether slices of a provider cost nothing that fray knows of.
func isFree(name schema.ProviderName) bool { return name != schema.ProviderGCP }

// of is the Cost that a slice counts in, nil for one that is free.
func (s *costSums) of(spec *schema.SliceSpec) *plan.Cost {
	if isFree(spec.Provider) {
		return nil
	}
	k := costKind{provider: spec.Provider, zone: spec.Zone, name: PaidType(spec), preemptible: spec.Preemptible}
	others := s.others(spec)
	k.others = schema.JoinAccelerators(others)
	if c := s.kinds[k]; c != nil {
		return c
	}
	var offers []schema.Market
	if p := s.provider(spec.Provider); p != nil {
		offers = p.Offers
	}
	estimate := accelerators.EstimateOf(spec, offers)
	s.kinds[k] = &plan.Cost{
		Provider: k.provider, Zone: k.zone, Type: k.name, Preemptible: k.preemptible,
		PerChipHour: estimate.PerChipHour, PerSliceHour: estimate.PerHour, Else: s.priced(spec, others),
	}
	return s.kinds[k]
}

func (s *costSums) provider(name schema.ProviderName) *schema.Provider {
	for i := range s.desired.Providers {
		if s.desired.Providers[i].Name == name {
			return &s.desired.Providers[i]
		}
	}
	return nil
}

// sameKind reports whether a recorded slice is one that its owner still wants.
func sameKind(made, want *schema.SliceSpec) bool {
	return made.Provider == want.Provider && PaidType(made) == PaidType(want) && made.Preemptible == want.Preemptible
}

// PaidType names what a slice is paid for.
func PaidType(spec *schema.SliceSpec) string {
	switch {
	case spec.TPU != "":
		return spec.TPU
	case spec.MachineType != "":
		return spec.MachineType
	case spec.GPU.Count > 0:
		return spec.GPU.String()
	case spec.Memory == 0:
		return fmt.Sprintf("%g CPU", spec.CPU)
	}
	return fmt.Sprintf("%g CPU, %s", spec.CPU, spec.Memory)
}

// Total sums up costs.
func Total(costs []plan.Cost) CostTotal {
	var t CostTotal
	for i := range costs {
		c := &costs[i]
		t.Before, t.After = t.Before.Plus(c.Before.PerHour), t.After.Plus(c.After.PerHour)
		if !c.PerSliceHour.Known() {
			t.UnknownBefore += c.Before.Slices
			t.UnknownAfter += c.After.Slices
		}
	}
	return t
}
