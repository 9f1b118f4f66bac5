package cloud

import (
	"maps"
	"math"
	"math/rand/v2"
	"time"
)

// rules are a scenario with every default filled in.
type rules struct {
	scenario    Scenario
	zones       map[string]*zoneRules
	calm        Conditions
	createLimit int
	pageSize    int
	abated      bool // see Abate
}

type zoneRules struct {
	capacity   map[string]int
	reserved   map[string]int
	conditions Conditions
	types      map[string]Conditions
}

func newRules(s Scenario) *rules {
	r := &rules{scenario: s, zones: map[string]*zoneRules{}, createLimit: s.CreateLimit, pageSize: s.PageSize}
	if r.createLimit == 0 {
		r.createLimit = 90
	}
	if r.pageSize == 0 {
		r.pageSize = 500
	}
	r.calm = s.Conditions.over(calm())
	for _, table := range []map[string][]string{offered(), offeredGPUs()} {
		for kind, zones := range table {
			for _, zone := range zones {
				r.zone(zone).capacity[kind] = plenty
			}
		}
	}
	for i := range s.Zones {
		z := &s.Zones[i]
		to := r.zone(z.Name)
		maps.Copy(to.capacity, z.Capacity)
		maps.Copy(to.reserved, z.Reserved)
		to.conditions = z.Conditions.over(r.calm)
		for _, t := range z.Types {
			to.types[t.Name] = t.Conditions.over(to.conditions)
		}
	}
	return r
}

// zone is the zone of that name, made if there is none yet.
func (r *rules) zone(name string) *zoneRules {
	z := r.zones[name]
	if z == nil {
		z = &zoneRules{capacity: map[string]int{}, reserved: map[string]int{}, types: map[string]Conditions{}, conditions: r.calm}
		for _, family := range families() {
			z.capacity[family] = plenty
		}
		r.zones[name] = z
	}
	return z
}

// conditions are those of a type in a zone.
func (r *rules) conditions(zone, kind string) *Conditions {
	z := r.zones[zone]
	if z == nil {
		return &r.calm
	}
	if w, ok := z.types[kind]; ok {
		return &w
	}
	return &z.conditions
}

// calm are the conditions of the zero scenario.
func calm() Conditions {
	return Conditions{
		Provisioning:    Range{2 * time.Second, 5 * time.Second},
		Deletion:        Range{time.Second, 2 * time.Second},
		StockoutAfter:   Range{time.Second, 3 * time.Second},
		Notice:          Of(1),
		StaleFor:        Range{time.Minute, 10 * time.Minute},
		MaintenanceFor:  Range{2 * time.Minute, 5 * time.Minute},
		StuckFor:        Range{30 * time.Minute, 2 * time.Hour},
		QueueConditions: QueueConditions{Suspension: Range{10 * time.Second, 30 * time.Second}},
	}
}

// over are the conditions with unset fields taken from the enclosing ones.
func (w Conditions) over(around Conditions) Conditions {
	ranges, aroundRanges := w.ranges(), around.ranges()
	for i := range ranges {
		if *ranges[i] == (Range{}) {
			*ranges[i] = *aroundRanges[i]
		}
	}
	shares, aroundShares := w.shares(), around.shares()
	for i := range shares {
		if !shares[i].Set {
			*shares[i] = *aroundShares[i]
		}
	}
	if w.Preemption == 0 {
		w.Preemption = around.Preemption
	}
	if w.Maintenance == 0 {
		w.Maintenance = around.Maintenance
	}
	return w
}

func (w *Conditions) ranges() []*Range {
	return []*Range{
		&w.Provisioning, &w.Boot, &w.BootSpread, &w.OperationLag, &w.Deletion, &w.StockoutAfter, &w.StaleFor, &w.MaintenanceFor,
		&w.UnknownHealthFor, &w.StuckFor, &w.Suspension,
	}
}

func (w *Conditions) shares() []*Share {
	return []*Share{
		&w.Notice, &w.OtherEndStates, &w.StaleStates, &w.LateFailures, &w.CreatePreempted, &w.DeadHosts, &w.BadHosts, &w.StuckDeletions,
		&w.Lingering,
	}
}

// draw takes a time from the range.
func (r Range) draw(from *rand.Rand) time.Duration {
	if r.Max <= r.Min {
		return r.Min
	}
	return r.Min + time.Duration(from.Int64N(int64(r.Max-r.Min)+1))
}

// draw decides whether it happens.
func (s Share) draw(from *rand.Rand) bool { return s.P > 0 && from.Float64() < s.P }

// exponential draws the time until something that happens every mean on average.
func exponential(mean time.Duration, from *rand.Rand) time.Duration {
	return time.Duration(math.Min(from.ExpFloat64()*float64(mean), math.MaxInt64/4))
}

// abated are the conditions without faults; durations stay.
func (w Conditions) abated() Conditions {
	w.Preemption, w.Maintenance = 0, 0
	for _, share := range w.shares() {
		*share = Of(0)
	}
	return w
}
