package accelerators

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// OfferedZones lists the zones that are known to have a TPU type, GPUs as
// [schema.GPU.Kind] writes them, or a machine type, as far as a provider's offers or
// the built-in table know; nil where nothing is known. The list is not complete: a zone that stands nowhere in the
// table is to be taken on trust.
func OfferedZones(name string, offers []schema.Market) []string {
	if isTPU(name) {
		if shape, err := Parse(name); err == nil {
			return marketOf(shape.Generation, offers).zonesOf(shape)
		}
	}
	if gpu, ok := GPUOfKind(name); ok {
		if m, found := GPUMachineFor(gpu.Type, gpu.Count, 0, 0); found {
			return m.market(offers).zones
		}
		return marketOf(gpu.Type, offers).zones
	}
	if m, ok := GPUMachineWith(name); ok {
		return m.market(offers).zones
	}
	return marketOf(name, offers).zones
}

// GPUOfKind takes what [schema.GPU.Kind] writes apart, false for any other name.
func GPUOfKind(kind string) (schema.GPU, bool) {
	name, text, ok := strings.Cut(kind, ":")
	if !ok {
		return schema.GPU{Type: name}, false
	}
	count, err := strconv.Atoi(text)
	return schema.GPU{Type: name, Count: count}, err == nil && count > 0
}

// CandidateZones are where a provider's slices of a kind, as [OfferedZones] takes it, may
// be, best first. Stated zones are taken as they are; of the provider's, those that
// are known not to have it are left out. Where neither states any, or none in the
// stated regions, all that have it will do.
func CandidateZones(p *schema.Provider, kind string, zones, regions []string) []string {
	inRegions := func(zone string) bool { return len(regions) == 0 || slices.Contains(regions, RegionOf(zone)) }
	if len(zones) > 0 && len(regions) == 0 {
		return distinct(zones)
	}
	offered := OfferedZones(kind, p.Offers)
	var found []string
	sources := [][]string{zones, p.Zones, offered}
	if len(p.Zones) > 0 && len(regions) == 0 { // they are what the stack keeps to
		sources = sources[:2]
	}
	for _, from := range sources {
		for _, zone := range from {
			has := len(zones) > 0 || len(offered) == 0 || slices.Contains(offered, zone)
			if has && inRegions(zone) && !slices.Contains(found, zone) {
				found = append(found, zone)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	if len(zones) == 0 { // the table may be older than the cloud
		found = slices.DeleteFunc(slices.Clone(p.Zones), func(zone string) bool { return !inRegions(zone) })
	}
	return found
}

// ZonesWith are those of some zones that have a kind, as [OfferedZones] takes it, or of which
// the built-in table knows nothing.
func ZonesWith(kind string, zones []string, offers []schema.Market) []string {
	offered := OfferedZones(kind, offers)
	var found []string
	for _, zone := range distinct(zones) {
		if len(offered) == 0 || slices.Contains(offered, zone) || !IsKnownZone(zone) && !IsKnownGPUZone(zone) {
			found = append(found, zone)
		}
	}
	return found
}

// distinct are zones without those that are stated twice.
func distinct(zones []string) []string {
	found := make([]string, 0, len(zones))
	for _, zone := range zones {
		if !slices.Contains(found, zone) {
			found = append(found, zone)
		}
	}
	return found
}

// RegionOf is the region of a zone's name: "us-west4" of "us-west4-a".
func RegionOf(zone string) string { return zone[:max(0, strings.LastIndexByte(zone, '-'))] }

// tpuZones lists the zones of a TPU generation as built in.
func tpuZones(generation string) []string { return marketOf(generation, nil).allZones() }

// IsKnownZone reports whether the built-in table has a zone for any TPU type.
func IsKnownZone(zone string) bool {
	return slices.ContainsFunc(generations(), func(g generation) bool { return slices.Contains(tpuZones(g.name), zone) })
}

// IsKnownGPUZone reports whether the built-in table has a zone for any type of GPUs.
func IsKnownGPUZone(zone string) bool {
	return slices.ContainsFunc(gpuSeriesTable(), func(s gpuSeries) bool { return slices.Contains(GPUZones(s.accelerator), zone) }) ||
		slices.ContainsFunc(attachables(), func(a attachable) bool { return slices.Contains(GPUZones(a.accelerator), zone) })
}

// Offers are the TPU types of a provider that a query chooses, by generation and
// size; none for a query for GPUs alone. The provider local simulates all of them, in the zone "local" and for
// nothing.
func Offers(q Query) []Offer {
	var offers []Offer
	if q.GPU != "" && q.Generation == "" {
		return nil
	}
	for _, g := range generations() {
		if q.Generation != "" && q.Generation != g.name {
			continue
		}
		for _, size := range g.validSizes() {
			topology, _ := g.topology(size)
			shape := g.shape(size, topology)
			zones := pricedZones(&q, shape)
			if len(q.Zones) > 0 && len(zones) == 0 {
				continue
			}
			if shape.Chips >= q.MinChips && (q.MaxChips == 0 || shape.Chips <= q.MaxChips) {
				offers = append(offers, Offer{Shape: shape, Zones: zones})
			}
		}
	}
	slices.SortFunc(offers, func(a, b Offer) int {
		return cmp.Or(strings.Compare(a.Generation, b.Generation), cmp.Compare(a.Chips, b.Chips))
	})
	return offers
}

// pricedZones are the zones of a shape that a query asks for. A price is
// the low end of what is published: that of the cheapest region.
func pricedZones(q *Query, shape Shape) []PricedZone {
	m := marketOf(shape.Generation, q.Offers)
	if q.Provider == schema.ProviderLocal {
		m = market{zones: []string{string(schema.ProviderLocal)}}
	}
	var zones []PricedZone
	for _, zone := range m.zonesOf(shape) {
		if len(q.Zones) == 0 || slices.Contains(q.Zones, zone) {
			zones = append(zones, PricedZone{Zone: zone, OnDemand: m.onDemand.Low, Spot: m.spot.Low})
		}
	}
	return zones
}
