package change

import (
	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// A job with alternatives costs what those slices do that it has, or is given first. What
// the others would cost stands beside it.

// choicesOf are the jobs with alternatives.
func choicesOf(desired *schema.Desired) map[schema.Address]*schema.Job {
	var choices map[schema.Address]*schema.Job
	for i := range desired.Jobs {
		if j := &desired.Jobs[i]; len(j.Resources.Accelerators) > 0 {
			if choices == nil {
				choices = map[schema.Address]*schema.Job{}
			}
			choices[j.Addr] = j
		}
	}
	return choices
}

// chosen is a job on the alternative that its slices have, or the first.
func (s *costSums) chosen(want *schema.Job) *schema.Job {
	for i := range s.made[want.Addr] {
		if a := s.made[want.Addr][i].Accelerator(); want.Resources.IsAlternative(a) {
			return want.As(a)
		}
	}
	return want.As(want.Resources.Accelerator())
}

// ownSlice is a slice that a job has where it is tried first.
func (s *costSums) ownSlice(want *schema.Job) schema.SliceSpec {
	zones := want.Resources.Zones
	if p := s.provider(want.Resources.Provider); p != nil && len(want.Resources.Accelerators) > 0 && len(zones) > 0 {
		zones = accelerators.ZonesWith(string(want.Resources.Accelerator()), zones, p.Offers)
	}
	return s.located(plan.OwnSlice("", want, 0), zones, want.Resources.Regions)
}

// others are the alternatives of a slice's owner beside the one that it is, in order.
func (s *costSums) others(spec *schema.SliceSpec) []schema.Accelerator {
	want := s.choices[spec.Owner]
	if want == nil || !want.Resources.IsAlternative(spec.Accelerator()) {
		return nil
	}
	var others []schema.Accelerator
	for _, a := range want.Resources.Accelerators {
		if a != spec.Accelerator() {
			others = append(others, a)
		}
	}
	return others
}

// priced estimates what slices of alternatives would cost in place of one.
func (s *costSums) priced(spec *schema.SliceSpec, others []schema.Accelerator) []plan.CostAlternative {
	var all []plan.CostAlternative
	for _, a := range others {
		as := s.ownSlice(s.choices[spec.Owner].As(a))
		var offers []schema.Market
		if p := s.provider(as.Provider); p != nil {
			offers = p.Offers
		}
		all = append(all, plan.CostAlternative{Type: string(a), PerSliceHour: accelerators.EstimateOf(&as, offers).PerHour})
	}
	return all
}
