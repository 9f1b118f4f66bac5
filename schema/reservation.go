package schema

import (
	"fmt"
	"math"
)

// reservation decodes a pool. Its ends have one shape, stated in either.
func (e *evaluator) reservation(decl *declaration) (Reservation, bool) {
	before := len(e.diags)
	b, ok := e.expanded(decl.block, nil)
	if !ok {
		return Reservation{}, false
	}
	r := Reservation{
		Addr:     e.global(decl.addr),
		Provider: e.provider(nil, b.attr("provider")),
		Priority: get(e, nil, b.attr("priority"), wholeNumber(math.MinInt32, math.MaxInt32), 0),
		TTL:      get(e, nil, b.attr("ttl"), asDuration, 0),

		IdleTimeout: get(e, nil, b.attr("idle_timeout"), positiveDuration, 0),

		Lifecycle: e.lifecycle(decl),
	}
	if growth := get(e, nil, b.attr("growth"), oneOf(GrowthDemand, GrowthOffer), GrowthDemand); growth != GrowthDemand {
		r.Growth = growth // the zero Growth is that on demand
	}
	if name, ok := e.referenceTo(nil, b.attr("namespace"), KindNamespace); ok {
		r.Namespace = name
	}
	preemptible, stated := lookup(e, nil, b.attr("preemptible"), asBool, false)
	low, high := b.child("min"), b.child("max")
	places := e.poolPlaces(b, r.Provider)
	switch {
	case low == nil && high == nil:
		e.errorAt(b.rng(), "Empty block", "A reservation needs min { … } with the shape and number of its slices, and may have max { … }.")
		return r, false
	case high == nil:
		r.Min = e.capacity(low)
		r.Max = r.Min
	case low == nil:
		r.Max = e.capacity(high)
		r.Min = r.Max
		r.Min.Slices = 0
	default:
		r.Min, r.Max = e.capacity(low), e.capacity(high)
		e.checkEnds(b, &r)
	}
	if r.Max.TPU == "" && r.Max.CPU == 0 {
		r.Min.CPU, r.Max.CPU = 1, 1
	}
	r.Preemptible = preemptible || !stated && r.Max.TPU != ""
	e.settlePlaces(b, &r, places)
	return r, !e.diags[before:].HasErrors()
}

// poolPlaces decodes where a pool's slices are and what they have there.
func (e *evaluator) poolPlaces(b *block, provider ProviderName) Resources {
	r := Resources{Provider: provider, Cloud: e.gcp.Cloud}
	r.Zones = get(e, nil, b.attr("zones"), stringList, nil)
	r.Regions = get(e, nil, b.attr("regions"), stringList, nil)
	e.warnOfZones(b.attr("zones"), r.Zones)
	e.warnOfRegions(b.attr("regions"), r.Regions)
	e.cloud(nil, b, &r.Cloud)
	return r
}

// settlePlaces gives a pool its places, once its shape is known.
func (e *evaluator) settlePlaces(b *block, r *Reservation, places Resources) {
	places.TPU = r.Max.TPU
	e.checkShape(b, &places)
	e.checkPlaced(b, &places)
	e.settleCloud(b, &places.Cloud, places.TPU)
	if r.Provider == ProviderGCP {
		r.Zones, r.Regions, r.Cloud = places.Zones, places.Regions, places.Cloud
	}
}

func (e *evaluator) capacity(b *block) Capacity {
	c := Capacity{
		TPU:    e.tpu(nil, b.attr("tpu")),
		CPU:    get(e, nil, b.attr("cpu"), asCores, 0),
		Memory: get(e, nil, b.attr("memory"), asBytes, 0),
		Disk:   get(e, nil, b.attr("disk"), asBytes, 0),
		Slices: get(e, nil, b.attr("slices"), wholeNumber(0, 100_000), 1),
	}
	if c.TPU != "" {
		for _, name := range []string{"cpu", "memory", "disk"} {
			if x := b.attr(name); x != nil {
				e.errorAt(x.rng, "TPU and "+name, fmt.Sprintf("A TPU slice brings its own machines: remove %s, or remove tpu for machines without TPU.", name))
			}
		}
	}
	return c
}

// checkEnds settles the shape of a pool with both ends, and reports ends that
// do not fit together.
func (e *evaluator) checkEnds(b *block, r *Reservation) {
	shapeless := func(c Capacity) bool { return c.TPU == "" && c.CPU == 0 && c.Memory == 0 && c.Disk == 0 }
	switch {
	case shapeless(r.Min):
		r.Min.TPU, r.Min.CPU, r.Min.Memory, r.Min.Disk = r.Max.TPU, r.Max.CPU, r.Max.Memory, r.Max.Disk
	case shapeless(r.Max):
		r.Max.TPU, r.Max.CPU, r.Max.Memory, r.Max.Disk = r.Min.TPU, r.Min.CPU, r.Min.Memory, r.Min.Disk
	case r.Min.TPU != r.Max.TPU || r.Min.CPU != r.Max.CPU || r.Min.Memory != r.Max.Memory || r.Min.Disk != r.Max.Disk:
		e.errorAt(b.child("max").rng(), "Two shapes in one reservation", "All slices of a reservation have the shape of min: state the same in max, or leave it out there.")
	}
	if r.Min.Slices > r.Max.Slices {
		e.errorAt(b.child("min").rng(), "Min larger than max", fmt.Sprintf("min asks for slices = %d, max allows %d. Lower one, or raise the other.", r.Min.Slices, r.Max.Slices))
	}
}
