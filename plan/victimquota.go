package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A quota is known only when it is used up. A unit whose slices are refused for
// that reason ends units of lower bands that hold as much of the same quota. When
// they have gone, it asks again at once.

// roomInQuota makes room for a unit that has been placed.
func (d *differ) roomInQuota(jobs []*schema.Job) {
	needs := map[string]load{}
	for _, want := range jobs {
		if !d.placeable(want) {
			continue
		}
		for _, name := range d.next.Jobs[want.Addr].Slices {
			s := d.next.Slices[name]
			if _, listed := d.slices[name]; s != nil && s.OverQuota && !listed {
				place := quotaPlace(&s.Spec)
				needs[place] = needs[place].plus(load{chips: max(1, d.sliceLoad(&s.Spec).chips)}, 1)
			}
		}
	}
	delete(needs, "")
	if len(needs) == 0 {
		return
	}
	u, demoted := d.units(jobs)[0], d.beyondBudget()
	if d.stand(u); slices.ContainsFunc(jobs, func(want *schema.Job) bool { return demoted[want.Addr] }) {
		u.band = bandOrder(schema.BandBatch)
	}
	var short []claim
	for place, need := range needs {
		b := bound{kind: ofQuota, name: place}
		c := claim{bound: b, need: need, used: need.plus(d.going(b), -1), limit: need} // all of it is used
		if c.need.exceeds(c.used, c.limit) {
			short = append(short, c)
		}
	}
	if len(short) == 0 || d.isHopeless(u, short) {
		return
	}
	slices.SortFunc(short, func(a, b claim) int { return strings.Compare(a.bound.name, b.bound.name) })
	for _, v := range d.cheapest(u, short, nil) {
		d.evict(v, u)
	}
}

// addQuota adds what a job's slices take of quotas.
func (d *differ) addQuota(sums map[bound]load, j *state.Job) {
	for _, name := range j.Slices {
		s := d.next.Slices[name]
		if _, listed := d.slices[name]; s == nil || !listed || s.Spec.Zone == "" {
			continue
		}
		b := bound{kind: ofQuota, name: quotaPlace(&s.Spec)}
		sums[b] = sums[b].plus(load{chips: max(1, d.sliceLoad(&s.Spec).chips)}, 1)
	}
}

// quotas are the places whose quotas a job's slices take.
func (d *differ) quotas(j *state.Job) []string {
	var places []string
	for _, name := range j.Slices {
		if s := d.next.Slices[name]; s != nil && s.Spec.Zone != "" {
			places = append(places, quotaPlace(&s.Spec))
		}
	}
	return places
}

// quotaFreed has a unit for which room was made ask again, for what was refused
// for a quota that is used up no more.
func (d *differ) quotaFreed(places []string, by schema.Address) {
	for _, place := range places {
		if w, bad := d.next.Weather[place]; bad && w.Kind == schema.ErrorQuota {
			d.setWeather(place, nil)
		}
	}
	members := d.family(by)
	if j := d.next.Jobs[by]; j != nil {
		members = []*schema.Job{j.Spec}
	}
	for _, want := range members {
		j := d.next.Jobs[want.Addr]
		if j == nil {
			continue
		}
		for _, name := range j.Slices {
			if s := d.next.Slices[name]; s != nil && s.OverQuota && slices.Contains(places, quotaPlace(&s.Spec)) {
				e := d.editSlice(name)
				e.OverQuota, e.RetryAt = false, time.Time{}
			}
		}
	}
}
