package snapshot

import (
	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// AmountOf is the capacity that a slice takes.
func (d *Draft) AmountOf(spec *schema.SliceSpec) plan.Amount {
	if spec.On != "" { // a part of another one
		return plan.Amount{}
	}
	a := plan.Amount{Slices: 1, Hosts: spec.Hosts, GPUs: spec.GPU.Count * max(1, spec.Hosts)}
	if spec.TPU == "" {
		a.CPU, a.Memory = spec.CPU, spec.Memory
		return a
	}
	a.Chips = d.Accelerator(spec.TPU).Chips
	return a
}

// Accelerator is that of a TPU type, the zero one for no valid type. Many
// slices have few types.
func (d *Draft) Accelerator(tpu string) accelerators.Shape {
	acc, seen := d.accelerators[tpu]
	if !seen {
		if d.accelerators == nil {
			d.accelerators = map[string]accelerators.Shape{}
		}
		if parsed, err := accelerators.Parse(tpu); err == nil {
			acc = parsed
		}
		d.accelerators[tpu] = acc
	}
	return acc
}

// Spend keeps the sums of [differ.used] true when a slice that is not listed is
// recorded or forgotten.
func (d *Draft) Spend(spec schema.SliceSpec, n int) {
	if d.Spent != nil {
		d.Spent[spec.Provider] = d.Spent[spec.Provider].Times(d.AmountOf(&spec), n)
	}
}

// Provider is the declared provider of a name, an empty one if there is none.
func (d *Draft) Provider(name schema.ProviderName) *schema.Provider {
	for i := range d.Desired.Providers {
		if d.Desired.Providers[i].Name == name {
			return &d.Desired.Providers[i]
		}
	}
	return &schema.Provider{Name: name}
}
