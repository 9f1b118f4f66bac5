package accelerators

import (
	"math"

	"github.com/fray-ml/fray/schema"
)

// Price is an estimate in US dollars: between its ends. The zero Price is not
// known, which is not free.
type Price struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// HoursPerMonth is what a month is taken to have, a twelfth of a year.
const HoursPerMonth = 730

func exactly(dollars float64) Price { return Price{Low: dollars, High: dollars} }

// Known reports whether there is a price.
func (p Price) Known() bool { return p.High > 0 }

// Times is the price of n of it.
func (p Price) Times(n float64) Price { return Price{Low: p.Low * n, High: p.High * n} }

// Plus is the price of both.
func (p Price) Plus(q Price) Price { return Price{Low: p.Low + q.Low, High: p.High + q.High} }

// Estimate is what a slice is estimated to cost.
type Estimate struct {
	PerHour     Price // of the whole slice
	PerChipHour Price // of a TPU chip or a GPU with its share of the machine; not known of other machines
}

// EstimateOf estimates what a slice costs at list prices, without disks and
// traffic. offers stand in place of the built-in table. What is queued,
// reserved or flex-start counts like any other: what was agreed of it is not
// known here. A machine that states cores and memory but no type is taken to be
// between the cheapest and the dearest family; without memory it has a standard
// type's.
func EstimateOf(s *schema.SliceSpec, offers []schema.Market) Estimate {
	if s.Provider == schema.ProviderLocal {
		return Estimate{}
	}
	if shape, err := Parse(s.TPU); err == nil {
		chip := marketOf(shape.Generation, offers).price(s.Preemptible)
		return Estimate{PerHour: chip.Times(float64(shape.Chips)), PerChipHour: chip}
	}
	hosts := float64(max(1, s.Hosts))
	estimate := Estimate{PerHour: machinePrice(s, offers).Times(hosts)}
	if s.GPU.Count > 0 {
		estimate.PerChipHour = estimate.PerHour.Times(1 / (hosts * float64(s.GPU.Count)))
	}
	return estimate
}

func (m market) price(preemptible bool) Price {
	if preemptible {
		return m.spot
	}
	return m.onDemand
}

// machinePrice is the price of one machine of a slice.
func machinePrice(s *schema.SliceSpec, offers []schema.Market) Price {
	if stated := marketOf(s.MachineType, offers).price(s.Preemptible); s.MachineType != "" && stated.Known() {
		return stated
	}
	if s.GPU.Count > 0 {
		if m, ok := gpuMachineOf(s); ok {
			return m.market(offers).price(s.Preemptible)
		}
		return marketOf(s.GPU.Type, offers).price(s.Preemptible).Times(float64(s.GPU.Count))
	}
	if m, ok := GPUMachineWith(s.MachineType); ok {
		return m.market(offers).price(s.Preemptible)
	}
	price := Price{Low: math.Inf(1)}
	if s.MachineType != "" {
		m, ok := parseMachine(s.MachineType)
		if !ok {
			return Price{}
		}
		price = m.onDemand()
	} else {
		for _, f := range families() {
			gib := float64(s.Memory) / (1 << 30)
			if gib == 0 {
				gib = s.CPU * f.standard
			}
			one := machine{family: f, cores: s.CPU, gib: gib}.onDemand()
			price.Low, price.High = min(price.Low, one.Low), max(price.High, one.High)
		}
	}
	if s.Preemptible {
		return Price{Low: price.Low * cheapestSpot, High: price.High * dearestSpot}
	}
	return price
}
