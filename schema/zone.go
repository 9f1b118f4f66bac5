package schema

import (
	"cmp"
	"slices"
	"strings"
)

// market is what is published of a TPU generation: where it is offered, and what
// an hour of one chip costs there on demand in US dollars. The zones are those of
// the Cloud TPU documentation, not all of them; the price is the list price of
// the cheapest region, 0 where none is published.
type market struct {
	zones    []string
	onDemand float64
}

func marketOf(generation string) market {
	switch generation {
	case "v2":
		return market{onDemand: 1.125}
	case "v3":
		return market{onDemand: 2.00}
	case "v4":
		return market{zones: []string{"us-central2-b"}, onDemand: 3.22}
	case "v5litepod":
		return market{zones: []string{"europe-west4-b", "us-central1-a", "us-south1-a", "us-west1-c", "us-west4-a"}, onDemand: 1.20}
	case "v5p":
		return market{zones: []string{"europe-west4-b", "us-central1-a", "us-east5-a"}, onDemand: 4.20}
	case "v6e":
		return market{zones: []string{"europe-west4-a", "us-central1-b", "us-east1-d", "us-east5-a", "us-east5-b"}, onDemand: 2.70}
	case "tpu7x":
		return market{zones: []string{"us-central1-c"}}
	}
	return market{}
}

// tpuZones lists the zones that are known to have a TPU generation, nil where
// nothing is known. The list is not complete: a zone that stands nowhere in it is
// taken on trust.
func tpuZones(generation string) []string { return marketOf(generation).zones }

func isKnownZone(zone string) bool {
	return slices.ContainsFunc(generations(), func(g generation) bool { return slices.Contains(tpuZones(g.name), zone) })
}

// Offers are the TPU types of a provider that a query chooses, by generation and
// size. The provider local simulates all of them, in the zone "local" and for
// nothing.
func Offers(q AcceleratorQuery) []Offer {
	var offers []Offer
	for _, g := range generations() {
		if q.Generation != "" && q.Generation != g.name {
			continue
		}
		zones := pricedZones(q, g.name)
		if len(q.Zones) > 0 && len(zones) == 0 {
			continue
		}
		for _, size := range g.validSizes() {
			topology, _ := g.topology(size)
			shape := g.shape(size, topology)
			if shape.Chips >= q.MinChips && (q.MaxChips == 0 || shape.Chips <= q.MaxChips) {
				offers = append(offers, Offer{Accelerator: shape, Zones: zones})
			}
		}
	}
	slices.SortFunc(offers, func(a, b Offer) int {
		return cmp.Or(strings.Compare(a.Generation, b.Generation), cmp.Compare(a.Chips, b.Chips))
	})
	return offers
}

// pricedZones are the zones of a generation that a query asks for.
func pricedZones(q AcceleratorQuery, generation string) []PricedZone {
	m := marketOf(generation)
	if q.Provider == ProviderLocal {
		m = market{zones: []string{string(ProviderLocal)}}
	}
	var zones []PricedZone
	for _, zone := range m.zones {
		if len(q.Zones) == 0 || slices.Contains(q.Zones, zone) {
			zones = append(zones, PricedZone{Zone: zone, OnDemand: m.onDemand})
		}
	}
	return zones
}
