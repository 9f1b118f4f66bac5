package cloud

import (
	"time"
)

// poolKey is capacity of one type in one zone.
type poolKey struct {
	zone, kind string
	reserved   bool
}

// pool is what there is of it and how much is taken.
type pool struct{ total, used int }

type quotaKey struct {
	project, region, kind string
	tier                  Tier
}

// window is a time without capacity or reach, in real times.
type window struct {
	zone, kind string
	from, to   time.Time // zero to: for ever
}

func (w window) covers(zone, kind string, now time.Time) bool {
	return w.zone == zone && (w.kind == "" || w.kind == kind || kind == "") &&
		!now.Before(w.from) && (w.to.IsZero() || now.Before(w.to))
}

func (s *Spec) pool() poolKey {
	return poolKey{zone: s.Zone, kind: s.Type, reserved: s.Tier == TierReserved}
}

func (c *Cloud) pool(k poolKey) *pool {
	p := c.pools[k]
	if p == nil {
		p = &pool{}
		if z := c.rules.zones[k.zone]; z != nil {
			p.total = z.capacity[k.kind]
			if k.reserved {
				p.total = z.reserved[k.kind]
			}
		}
		c.pools[k] = p
	}
	return p
}

// lacking is why there is no capacity for all the specs together now, nil if
// there is.
func (c *Cloud) lacking(specs []Spec) *Error {
	now := c.clock.Now()
	need := map[poolKey]int{}
	for i := range specs {
		s := &specs[i]
		if s.Tier != TierReserved && c.stockedOut(s.Zone, s.Type, now) {
			return stockout(s)
		}
		k := s.pool()
		need[k] += s.Units
		if p := c.pool(k); p.used+need[k] > p.total {
			return stockout(s)
		}
	}
	return nil
}

func (c *Cloud) stockedOut(zone, kind string, now time.Time) bool {
	for _, w := range c.stockouts {
		if w.covers(zone, kind, now) {
			return true
		}
	}
	return false
}

func stockout(s *Spec) *Error {
	e := newError(ReasonStockout, "There is no more capacity in the zone %q; you can try in another zone where Cloud TPU Nodes are offered"+
		" (see https://cloud.google.com/tpu/docs/regions).", s.Zone)
	if s.Tier == TierReserved {
		e = newError(ReasonReservation, "Insufficient reserved capacity. Contact customer support to increase your reservation.")
	}
	e.Zone, e.Region, e.Type = s.Zone, RegionOf(s.Zone), s.Type
	return e
}

// take and release move capacity; what is taken is given back exactly once.
func (c *Cloud) take(s *Spec) { c.pool(s.pool()).used += s.Units }

func (c *Cloud) release(s *Spec) { c.pool(s.pool()).used -= s.Units }

// overQuota is why the specs together exceed a quota, nil if they do not.
func (c *Cloud) overQuota(specs []Spec) *Error {
	for _, q := range c.rules.scenario.Quotas {
		need, held := 0, 0
		for i := range specs {
			if s := &specs[i]; RegionOf(s.Zone) == q.Region && s.Type == q.Type && (q.Tier == "" || q.Tier == s.Tier) {
				need += s.Units
				held = c.held(s.Project, q)
			}
		}
		if need > 0 && held+need > q.Limit {
			e := newError(ReasonQuota, "Quota limit '%s' has been exceeded. Limit: %d in region %s.", q.name(), q.Limit, q.Region)
			e.Region, e.Type, e.Limit, e.Zone = q.Region, q.Type, q.Limit, specs[0].Zone
			return e
		}
	}
	return nil
}

// name is the limit's name in the style of the service's own.
func (q Quota) name() string {
	tier := ""
	if q.Tier == TierSpot {
		tier = "Preemptible"
	}
	return "TPU" + tier + q.Type + "PerProjectPerRegionForTPUAPI"
}

func (c *Cloud) held(project string, q Quota) int {
	sum := 0
	for _, tier := range []Tier{TierOnDemand, TierSpot, TierReserved} {
		if q.Tier == "" || q.Tier == tier {
			sum += c.quotas[quotaKey{project, q.Region, q.Type, tier}]
		}
	}
	return sum
}

// charge holds or, with -1, gives back the quota of specs.
func (c *Cloud) charge(specs []Spec, sign int) {
	for i := range specs {
		s := &specs[i]
		c.quotas[quotaKey{s.Project, RegionOf(s.Zone), s.Type, s.Tier}] += sign * s.Units
	}
}

// overRate counts a creation and says if it was one too many in this minute.
func (c *Cloud) overRate(project, method string) *Error {
	now := c.clock.Now()
	key := project + " " + method
	recent := c.minutes[key]
	for len(recent) > 0 && !recent[0].After(now.Add(-time.Minute)) {
		recent = recent[1:]
	}
	if len(recent) >= c.rules.createLimit {
		c.minutes[key] = recent
		e := newError(ReasonRate, "Quota limit '%s requests per minute' has been exceeded. Limit: %d per minute.", method, c.rules.createLimit)
		e.Limit = c.rules.createLimit
		return e
	}
	c.minutes[key] = append(recent, now)
	return nil
}
