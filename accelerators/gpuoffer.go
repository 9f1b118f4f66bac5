package accelerators

import (
	"slices"

	"github.com/fray-ml/fray/schema"
)

// GPUOffer is a machine type of a provider with GPUs.
type GPUOffer struct {
	GPU         schema.GPU
	Memory      int          // of one GPU, in GiB as its name states it
	MachineType string       // "" of the provider local
	Cores       float64      // of the machine; 0: any
	HostMemory  schema.Bytes // of the machine; 0: any
	Zones       []PricedZone // prices are those of one GPU with its share of the machine
}

// GPUOffers are the machine types with GPUs of a provider that a query chooses, the newest
// types first and by the number of GPUs; of machines that GPUs are attached to, the one
// that is chosen for a slice that states nothing else. A query for a TPU generation chooses
// none. The provider local simulates all types, in the zone "local" and for nothing.
func GPUOffers(q Query) []GPUOffer {
	var offers []GPUOffer
	if q.Generation != "" && q.GPU == "" {
		return nil
	}
	for _, t := range GPUTypes() {
		if q.GPU != "" && q.GPU != t.Name {
			continue
		}
		for _, offer := range t.offers(&q) {
			n := offer.GPU.Count
			if n >= q.MinChips && (q.MaxChips == 0 || n <= q.MaxChips) && (len(q.Zones) == 0 || len(offer.Zones) > 0) {
				offers = append(offers, offer)
			}
		}
	}
	return offers
}

func (t GPUType) offers(q *Query) []GPUOffer {
	var offers []GPUOffer
	if q.Provider == schema.ProviderLocal {
		counts := GPUCounts(t.Name)
		if len(counts) == 0 {
			counts = []int{1}
		}
		local := market{zones: []string{string(schema.ProviderLocal)}}
		for _, n := range counts {
			offers = append(offers, GPUOffer{GPU: schema.GPU{Type: t.Name, Count: n}, Memory: t.Memory, Zones: local.priced(q.Zones, 1)})
		}
		return offers
	}
	for _, m := range GPUMachines(t.Name) {
		if chosen, _ := GPUMachineFor(t.Name, m.Count, 0, 0); m.Attached && m != chosen {
			continue
		}
		offers = append(offers, GPUOffer{
			GPU: schema.GPU{Type: t.Name, Count: m.Count}, Memory: t.Memory, MachineType: m.Name, Cores: m.Cores, HostMemory: m.Memory,
			Zones: m.market(q.Offers).priced(q.Zones, float64(m.Count)),
		})
	}
	return offers
}

// priced are the zones of a market of machines that are among some, or all for none, with
// the price of one of n parts of a machine.
func (m market) priced(among []string, n float64) []PricedZone {
	var zones []PricedZone
	for _, zone := range m.allZones() {
		if len(among) == 0 || slices.Contains(among, zone) {
			zones = append(zones, PricedZone{Zone: zone, OnDemand: m.onDemand.Low / n, Spot: m.spot.Low / n})
		}
	}
	return zones
}
