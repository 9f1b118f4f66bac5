package plan

import (
	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
)

// Cost is what slices of one kind are estimated to cost, before and after a plan.
type Cost struct {
	Provider    schema.ProviderName `json:"provider"`
	Zone        string              `json:"zone,omitempty"` // "": not decided, and any will do
	Type        string              `json:"type"`           // of the TPU or the machine, or what is asked of the machine
	Preemptible bool                `json:"preemptible"`
	// PerChipHour is the price of a chip for an hour, PerSliceHour that of a slice.
	PerChipHour  accelerators.Price `json:"per_chip_hour,omitzero"`
	PerSliceHour accelerators.Price `json:"per_slice_hour,omitzero"` // zero: not known
	Before       Spend              `json:"before"`
	After        Spend              `json:"after"`
}

// Spend is an amount of slices and what an hour of them is estimated to cost.
type Spend struct {
	Slices  int                `json:"slices"`
	Hosts   int                `json:"hosts"`
	Chips   int                `json:"chips,omitempty"`
	PerHour accelerators.Price `json:"per_hour,omitzero"` // zero: nothing there, or the price is not known
}

// Add counts n slices at a price.
func (s *Spend) Add(spec *schema.SliceSpec, price accelerators.Price, n int) {
	s.Slices += n
	s.Hosts += n * max(1, spec.Hosts)
	s.Chips += n * accelerators.Chips(spec)
	s.PerHour = s.PerHour.Plus(price.Times(float64(n)))
}
