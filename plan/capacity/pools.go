package capacity

import (
	"slices"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Pools adds the slices of reservations, who holds them, and the shares of
// namespaces and users.
type Pools struct {
	*ZoneHealth

	Holders map[string]schema.Address // of slices of reservations, by name
	Idles   map[schema.ProviderName]snapshot.Load
	shares  *Accounts
}

func unitAt(addr schema.Address) schema.Address {
	if g := addr.GroupAddress(); !g.IsZero() {
		return g
	}
	return addr
}

// occupant is the one that a job is of.
func (d *Pools) occupant(p *snapshot.Pool, job schema.Address) *snapshot.Occupant {
	unit := unitAt(job)
	o := p.Occupants[unit]
	if o == nil {
		o = &snapshot.Occupant{Unit: unit, Finite: d.endsSomeDay(unit)}
		if p.Occupants == nil {
			p.Occupants = map[schema.Address]*snapshot.Occupant{}
		}
		p.Occupants[unit] = o
	}
	return o
}

// Endures reports whether a job does not end by itself.
func Endures(j *state.Job) bool {
	return !j.Status.Ended() && j.YieldsTo.IsZero() && !j.Stop && (j.Spec.IsService() || j.Spec.Retries.OnSuccess)
}

// endsSomeDay reports whether none of a unit's jobs endures.
func (d *Pools) endsSomeDay(unit schema.Address) bool {
	if j := d.JobAt(unit); j != nil {
		return !Endures(j)
	}
	return !slices.ContainsFunc(d.Family(unit), func(want *schema.Job) bool {
		j := d.JobAt(want.Addr)
		return j != nil && Endures(j)
	})
}

// Located is the spec of a slice in a zone, as a provider with these offers makes
// it. Slices of one owner and index in different zones have different names, so
// that one that turns up late is never taken for another.
func Located(spec schema.SliceSpec, zone string, offers []schema.Market) schema.SliceSpec {
	if zone == "" {
		return spec
	}
	spec.Zone = zone
	spec.Name = plan.SliceNameIn(zone, spec.Stack, spec.Owner, spec.Index)
	if spec.Cloud.Engine == "" {
		spec.Cloud.Engine = accelerators.EngineOf(spec.TPU, zone, offers)
	}
	return spec
}

// ZonesOf are the zones where a job's own slices may be, best first; "" alone where
// its provider has none.
func (d *Pools) ZonesOf(r *schema.Resources) []string {
	if r.Provider != schema.ProviderGCP {
		return []string{""}
	}
	return ZonesFor(d.Provider(r.Provider), r)
}

// ZonesFor are the zones of a provider where slices may be that resources name. Of zones that
// are stated for several alternatives each has its own.
func ZonesFor(p *schema.Provider, r *schema.Resources) []string {
	stated := r.Zones
	if len(r.Accelerators) > 0 && len(stated) > 0 {
		if stated = accelerators.ZonesWith(string(r.Accelerator()), stated, p.Offers); len(stated) == 0 {
			return nil
		}
	}
	return accelerators.CandidateZones(p, r.Kind(), stated, r.Regions)
}

// poolZones are the same for the slices of a reservation.
func (d *Pools) poolZones(r *schema.Reservation) []string {
	return d.ZonesOf(&schema.Resources{Provider: r.Provider, TPU: r.Min.TPU, GPU: r.Min.GPU, Zones: r.Zones, Regions: r.Regions})
}

func (d *Pools) poolSlice(r *schema.Reservation, index int, zone string) schema.SliceSpec {
	return Located(plan.PoolSlice(d.Stack, r, index), zone, d.Provider(r.Provider).Offers)
}

// IsRejected reports whether a slice is not there since its place is shut.
func (d *Pools) IsRejected(name string) bool {
	s := d.Next.Slices[name]
	if s == nil || s.Spec.Zone == "" || s.Listed || s.Failed == "" && !s.PendingSince.IsZero() {
		return false
	}
	_, listed := d.Listed[name]
	return !listed && !d.Shut(&s.Spec).None()
}

// stuckAfter is after how many calls for its end a slice counts as one that does
// not go away: about four minutes.
const stuckAfter = 8

// IsStuck reports whether a slice in a zone does not go away. A job that waits for its
// name would wait for as long; another name does as well.
func (d *Pools) IsStuck(name string) bool {
	st, listed := d.Listed[name]
	s := d.Next.Slices[name]
	return listed && s != nil && s.Spec.Zone != "" && st.Phase == schema.SliceDeleting && s.Deletions >= stuckAfter
}
