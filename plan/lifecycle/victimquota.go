package lifecycle

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// quotas are the places whose quotas a job's slices take.
func (d *Jobs) quotas(j *state.Job) []string {
	var places []string
	for _, name := range j.Slices {
		if s := d.Next.Slices[name]; s != nil && s.Spec.Zone != "" {
			places = append(places, capacity.QuotaPlace(&s.Spec))
		}
	}
	return places
}

// quotaFreed has a unit for which room was made ask again, for what was refused
// for a quota that is used up no more.
func (d *Jobs) quotaFreed(places []string, by schema.Address) {
	for _, place := range places {
		if w, bad := d.Next.ZoneHealth[place]; bad && w.Kind == schema.ErrorQuota {
			d.SetZoneHealth(place, nil)
		}
	}
	members := d.Family(by)
	if j := d.Next.Jobs[by]; j != nil {
		members = []*schema.Job{j.Spec}
	}
	for _, want := range members {
		j := d.Next.Jobs[want.Addr]
		if j == nil {
			continue
		}
		for _, name := range j.Slices {
			if s := d.Next.Slices[name]; s != nil && s.OverQuota && slices.Contains(places, capacity.QuotaPlace(&s.Spec)) {
				e := d.EditSlice(name)
				e.OverQuota, e.RetryAt = false, time.Time{}
			}
		}
	}
}
