package change

import (
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// HourlyOf is what an hour of each namespace with a cost block is estimated to cost after a plan,
// as [Costs] estimates it; what idles is left out.
func HourlyOf(desired *schema.Desired, p *plan.Plan) map[string]state.Dollars {
	var hourly map[string]state.Dollars
	for i := range desired.Namespaces {
		n := &desired.Namespaces[i]
		if n.Cost.MaxPerMonth == 0 {
			continue
		}
		name := n.Addr.Scoped()
		part := schema.Desired{Providers: desired.Providers}
		for k := range desired.Jobs {
			if desired.Jobs[k].Namespace == name {
				part.Jobs = append(part.Jobs, desired.Jobs[k])
			}
		}
		for k := range desired.Reservations {
			if desired.Reservations[k].Namespace == name {
				part.Reservations = append(part.Reservations, desired.Reservations[k])
			}
		}
		after := *p
		next := *p.Next
		next.Slices = make(map[string]*state.Slice, len(p.Next.Slices))
		for slice, s := range p.Next.Slices {
			if s.IdleSince.IsZero() || s.Spec.Owner.Kind == schema.KindReservation {
				next.Slices[slice] = s
			}
		}
		after.Next = &next
		total := Total(Costs(&part, &after, &plan.Observed{})).After
		if hourly == nil {
			hourly = map[string]state.Dollars{}
		}
		hourly[name] = state.Dollars(total)
	}
	return hourly
}
