package schedule

import (
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A quota is known only when it is used up. A unit whose slices are refused for
// that reason ends units of lower bands that hold as much of the same quota. When
// they have gone, it asks again at once.

// roomInQuota makes room for a unit that has been placed.
func (d *Victims) roomInQuota(jobs []*schema.Job) {
	var needs map[string]snapshot.Load
	for _, want := range jobs {
		if !d.Placeable(want) {
			continue
		}
		for _, name := range d.JobAt(want.Addr).Slices {
			s := d.Next.Slices[name]
			if _, listed := d.Listed[name]; s != nil && s.OverQuota && !listed {
				place := capacity.QuotaPlace(&s.Spec)
				if needs == nil {
					needs = map[string]snapshot.Load{}
				}
				needs[place] = needs[place].Plus(snapshot.Load{Chips: max(1, d.SliceLoad(&s.Spec).Chips)}, 1)
			}
		}
	}
	delete(needs, "")
	if len(needs) == 0 {
		return
	}
	u, demoted := d.units(jobs)[0], d.beyondBudget()
	if d.stand(u); slices.ContainsFunc(jobs, func(want *schema.Job) bool { return demoted[want.Addr] }) {
		u.Band = capacity.BandOrder(schema.BandBatch)
	}
	var short []capacity.Claim
	for place, need := range needs {
		b := capacity.Bound{Kind: capacity.OfQuota, Name: place}
		c := capacity.Claim{Bound: b, Need: need, Used: need.Plus(d.going(b), -1), Limit: need} // all of it is used
		if c.Need.Exceeds(c.Used, c.Limit) {
			short = append(short, c)
		}
	}
	if len(short) == 0 || d.isInfeasible(u, short) {
		return
	}
	slices.SortFunc(short, func(a, b capacity.Claim) int { return strings.Compare(a.Bound.Name, b.Bound.Name) })
	for _, v := range d.cheapest(u, short, nil) {
		d.evict(v, u)
	}
}

// addQuota adds what a job's slices take of quotas.
func (d *Victims) addQuota(sums map[capacity.Bound]snapshot.Load, j *state.Job) {
	for _, name := range j.Slices {
		s := d.Next.Slices[name]
		if _, listed := d.Listed[name]; s == nil || !listed || s.Spec.Zone == "" {
			continue
		}
		b := capacity.Bound{Kind: capacity.OfQuota, Name: capacity.QuotaPlace(&s.Spec)}
		sums[b] = sums[b].Plus(snapshot.Load{Chips: max(1, d.SliceLoad(&s.Spec).Chips)}, 1)
	}
}
