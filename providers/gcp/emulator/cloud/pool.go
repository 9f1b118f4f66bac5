package cloud

import (
	"cmp"
	"slices"
	"time"
)

// poolKey is capacity of one type in one zone.
type poolKey struct {
	zone, kind string
	reserved   bool
}

// pool is what there is of it and how much is taken.
type pool struct{ total, used int }

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

// accounts are what is taken of capacity and held of quotas.
type accounts struct {
	*runner
	*rules
	pools     map[poolKey]*pool
	quotas    map[quotaKey]int    // units held
	stockouts map[string][]window // by zone
}

func (c *accounts) pool(k poolKey) *pool {
	p := c.pools[k]
	if p == nil {
		p = &pool{}
		if z := c.zones[k.zone]; z != nil {
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
func (c *accounts) lacking(specs []Spec) *Error {
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

func (c *accounts) stockedOut(zone, kind string, now time.Time) bool {
	for _, w := range c.stockouts[zone] {
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
func (c *accounts) take(s *Spec) { c.pool(s.pool()).used += s.Units }

func (c *accounts) release(s *Spec) { c.pool(s.pool()).used -= s.Units }

// Capacity is what there is of a type in a zone, and how much of it is taken.
type Capacity struct {
	Zone     string `json:"zone"`
	Type     string `json:"type"`
	Reserved bool   `json:"reserved,omitempty"`
	Total    int    `json:"total"`
	Used     int    `json:"used"`
}

// Capacity lists what the scenario names and what anything was taken of, sorted
// by zone and type.
func (c *accounts) Capacity() []Capacity {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, zone := range c.scenario.Zones {
		for kind := range zone.Capacity {
			c.pool(poolKey{zone.Name, kind, false})
		}
		for kind := range zone.Reserved {
			c.pool(poolKey{zone.Name, kind, true})
		}
	}
	all := make([]Capacity, 0, len(c.pools))
	for k, p := range c.pools {
		all = append(all, Capacity{Zone: k.zone, Type: k.kind, Reserved: k.reserved, Total: p.total, Used: p.used})
	}
	slices.SortFunc(all, func(a, b Capacity) int {
		reserved := 0
		if a.Reserved != b.Reserved {
			reserved = 1
			if b.Reserved {
				reserved = -1
			}
		}
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Type, b.Type), reserved)
	})
	return all
}
