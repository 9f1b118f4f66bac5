package accelerators

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// PricesFrom is where the built-in prices come from and of when they are.
const PricesFrom = "published list prices, collected in November 2026"

// market is what is published of a TPU generation, or stated of a machine type:
// where it is offered, and what an hour of one chip, or of one machine, costs.
// The zones are those of the Cloud TPU documentation, not all of them.
type market struct {
	zones []string
	// single are zones with slices of one host only, multi with larger ones only.
	single, multi []string
	onDemand      Price
	spot          Price
}

// builtinMarket is the table of TPU generations. A price spans the regions: the
// low end is that of the cheapest one. It is for a chip with its share of the
// host. A zero price is published nowhere.
func builtinMarket(generation string) market {
	switch generation {
	case "v2":
		return market{
			zones: []string{"europe-west4-a"}, single: []string{"asia-east1-c", "us-central1-b", "us-central1-c"}, multi: []string{"us-central1-a"},
			onDemand: exactly(1.125),
		}
	case "v3":
		return market{zones: []string{"europe-west4-a"}, single: []string{"us-central1-a", "us-central1-b"}, onDemand: exactly(2.00)}
	case "v4":
		return market{zones: []string{"us-central2-b"}, onDemand: exactly(3.22), spot: exactly(0.92)}
	case "v5litepod":
		return market{
			zones:    []string{"europe-west4-b", "us-central1-a", "us-south1-a", "us-west1-c", "us-west4-a"},
			onDemand: Price{1.20, 1.56}, spot: Price{0.21, 0.78},
		}
	case "v5p":
		return market{
			zones:    []string{"europe-west4-b", "us-central1-a", "us-east5-a"},
			onDemand: Price{4.20, 4.78}, spot: Price{1.35, 2.40},
		}
	case "v6e":
		return market{
			zones:    []string{"asia-northeast1-b", "europe-west4-a", "us-central1-b", "us-east1-d", "us-east5-a", "us-east5-b"},
			onDemand: Price{2.70, 3.24}, spot: Price{0.65, 2.27},
		}
	case "tpu7x":
		return market{zones: []string{"us-central1-c"}}
	}
	return market{}
}

// marketOf is the market of a TPU generation or machine type, with what a
// provider's offers override what is built in.
func marketOf(name string, offers []schema.Market) market {
	m := builtinMarket(name)
	if o, ok := offerNamed(name, offers); ok {
		m = m.overridden(o)
	}
	return m
}

// offerNamed is the offer of a name, false if there is none.
func offerNamed(name string, offers []schema.Market) (schema.Market, bool) {
	i := slices.IndexFunc(offers, func(o schema.Market) bool { return o.Name == name })
	if i < 0 {
		return schema.Market{}, false
	}
	return offers[i], true
}

// overridden is the market with what an offer states of it.
func (m market) overridden(o schema.Market) market {
	if o.Zones != nil {
		m.zones, m.single, m.multi = o.Zones, nil, nil
	}
	if o.OnDemand != 0 {
		m.onDemand = exactly(o.OnDemand)
	}
	if o.Spot != 0 {
		m.spot = exactly(o.Spot)
	}
	return m
}

// allZones are the zones that have slices of any size.
func (m market) allZones() []string { return m.with(m.single, m.multi) }

// zonesOf are the zones that have slices of a shape.
func (m market) zonesOf(shape Shape) []string {
	if shape.Hosts > 1 {
		return m.with(m.multi)
	}
	return m.with(m.single)
}

// with are the zones of all sizes and others, sorted if there are others.
func (m market) with(others ...[]string) []string {
	more := slices.Concat(others...)
	if len(more) == 0 {
		return m.zones
	}
	return slices.Sorted(slices.Values(append(more, m.zones...)))
}

// family is a family of machine types: what an hour of one vCPU and of one GiB
// of memory costs on demand in US dollars in us-central1, and how many GiB its
// predefined types have for each vCPU.
type family struct {
	name                       string
	core, gib                  float64
	standard, highmem, highCPU float64
}

// families are the machine families with built-in prices, from Compute Engine's
// price list. The others have none until an offer states one.
func families() []family {
	return []family{
		{name: "e2", core: 0.021811, gib: 0.002923, standard: 4, highmem: 8, highCPU: 1},
		{name: "n1", core: 0.031611, gib: 0.004237, standard: 3.75, highmem: 6.5, highCPU: 0.9},
		{name: "n2", core: 0.031611, gib: 0.004237, standard: 4, highmem: 8, highCPU: 1},
		{name: "n2d", core: 0.027502, gib: 0.003686, standard: 4, highmem: 8, highCPU: 1},
		{name: "c2", core: 0.03398, gib: 0.00455, standard: 4},
	}
}

// familyNamed is the family of a name with a built-in price.
func familyNamed(name string) family {
	i := slices.IndexFunc(families(), func(f family) bool { return f.name == name })
	if i < 0 {
		return family{}
	}
	return families()[i]
}

// How the prices of machines spread: those of the regions that have TPUs lie up
// to a quarter above us-central1's, and spot capacity costs 60 to 91 % less, as
// Compute Engine's documentation of Spot VMs has it.
const (
	dearestRegion = 1.25
	cheapestSpot  = 0.09
	dearestSpot   = 0.40
)

// machine is the shape of a machine type of a known family.
type machine struct {
	family family
	cores  float64
	gib    float64 // of memory
}

// parseMachine takes a machine type such as "n2-standard-8" or
// "e2-custom-4-8192" apart, as far as its family's price is known.
func parseMachine(name string) (machine, bool) {
	parts := strings.Split(name, "-")
	if cores := sharedCores(name); cores > 0 {
		return machine{family: families()[0], cores: cores, gib: 4 * cores}, true
	}
	i := slices.IndexFunc(families(), func(f family) bool { return f.name == parts[0] })
	if i < 0 || len(parts) < 3 {
		return machine{}, false
	}
	m := machine{family: families()[i]}
	cores, err := strconv.Atoi(parts[2])
	if err != nil || cores <= 0 {
		return machine{}, false
	}
	m.cores = float64(cores)
	switch {
	case parts[1] == "standard" && len(parts) == 3:
		m.gib = m.cores * m.family.standard
	case parts[1] == "highmem" && len(parts) == 3:
		m.gib = m.cores * m.family.highmem
	case parts[1] == "highcpu" && len(parts) == 3:
		m.gib = m.cores * m.family.highCPU
	case parts[1] == "custom" && len(parts) == 4:
		mib, err := strconv.Atoi(parts[3])
		if err != nil {
			return machine{}, false
		}
		m.gib = float64(mib) / 1024
	}
	return m, m.gib > 0
}

// sharedCores is what a machine type of parts of cores is charged for; 0: it is
// none. Its memory is four times that in GiB.
func sharedCores(name string) float64 {
	switch name {
	case "e2-micro":
		return 0.25
	case "e2-small":
		return 0.5
	case "e2-medium":
		return 1
	}
	return 0
}

// onDemand is what an hour of the machine costs.
func (m machine) onDemand() Price {
	low := m.cores*m.family.core + m.gib*m.family.gib
	return Price{Low: low, High: low * dearestRegion}
}
