package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// amountOf is the capacity that a slice takes.
func (d *differ) amountOf(spec *schema.SliceSpec) Amount {
	a := Amount{Slices: 1, Hosts: spec.Hosts}
	if spec.TPU == "" {
		a.CPU, a.Memory = spec.CPU, spec.Memory
		return a
	}
	a.Chips = d.shape(spec.TPU).Chips
	return a
}

// shape is the accelerator of a TPU type, the zero one for no valid type. Many
// slices have few shapes.
func (d *differ) shape(tpu string) schema.Accelerator {
	acc, seen := d.shapes[tpu]
	if !seen {
		if d.shapes == nil {
			d.shapes = map[string]schema.Accelerator{}
		}
		if parsed, err := schema.ParseAccelerator(tpu); err == nil {
			acc = parsed
		}
		d.shapes[tpu] = acc
	}
	return acc
}

func (a Amount) plus(b Amount) Amount { return a.times(b, 1) }

// times adds n times b.
func (a Amount) times(b Amount, n int) Amount {
	return Amount{
		Slices: a.Slices + n*b.Slices, Hosts: a.Hosts + n*b.Hosts, Chips: a.Chips + n*b.Chips,
		CPU: a.CPU + float64(n)*b.CPU, Memory: a.Memory + schema.Bytes(n)*b.Memory,
	}
}

func limitOf(p schema.Provider) Amount {
	return Amount{Slices: p.Slices, CPU: p.CPU, Memory: p.Memory}
}

// used is what a provider's limit is spent on: everything that is there or has
// been asked for, wanted or not, until it is gone.
func (d *differ) used(provider schema.ProviderName) Amount {
	if d.spent == nil {
		d.spent = map[schema.ProviderName]Amount{}
		for name, s := range d.next.Slices {
			if _, listed := d.slices[name]; !listed {
				d.spend(s.Spec, 1)
			}
		}
		for _, st := range d.slices {
			d.spend(st.Spec, 1)
		}
	}
	return d.spent[provider]
}

// spend keeps the sums of [differ.used] true when a slice that is not listed is
// recorded or forgotten.
func (d *differ) spend(spec schema.SliceSpec, n int) {
	if d.spent != nil {
		d.spent[spec.Provider] = d.spent[spec.Provider].times(d.amountOf(&spec), n)
	}
}

// lacks says why the slices do not fit into what their providers have left, ""
// when they do. Slices that are there already need nothing more.
func (d *differ) lacks(specs []schema.SliceSpec) string {
	for i := range d.desired.Providers {
		p := &d.desired.Providers[i]
		limit := limitOf(*p)
		if limit == (Amount{}) {
			continue
		}
		var need Amount
		for n := range specs {
			spec := &specs[n]
			if spec.Provider != p.Name || d.next.Slices[spec.Name] != nil {
				continue
			}
			if _, listed := d.slices[spec.Name]; !listed {
				need = need.plus(d.amountOf(spec))
			}
		}
		if need == (Amount{}) {
			continue
		}
		if short := shortage(need, d.used(p.Name), limit); short != "" {
			return fmt.Sprintf("provider %s: %s", p.Name, short)
		}
	}
	return ""
}

func plural(many bool) string {
	if many {
		return "s"
	}
	return ""
}

// shortage says which part of a limit is exceeded.
func shortage(need, used, limit Amount) string {
	var short []string
	if limit.Slices > 0 && used.Slices+need.Slices > limit.Slices {
		short = append(short, fmt.Sprintf("needs %d more slice%s, %d of %d are in use", need.Slices, plural(need.Slices != 1), used.Slices, limit.Slices))
	}
	if limit.CPU > 0 && need.CPU > 0 && used.CPU+need.CPU > limit.CPU {
		short = append(short, fmt.Sprintf("needs %g more CPU%s, %g of %g are in use", need.CPU, plural(need.CPU != 1), used.CPU, limit.CPU))
	}
	if limit.Memory > 0 && need.Memory > 0 && used.Memory+need.Memory > limit.Memory {
		short = append(short, fmt.Sprintf("needs %s more memory, %s of %s are in use", need.Memory, used.Memory, limit.Memory))
	}
	return strings.Join(short, "; ")
}

// capacity sums up what each provider holds before and after the plan: the
// declared providers in their order, then others that are in use.
func (d *differ) capacity() {
	before, after := map[schema.ProviderName]Amount{}, map[schema.ProviderName]Amount{}
	for _, st := range d.slices {
		before[st.Spec.Provider] = before[st.Spec.Provider].plus(d.amountOf(&st.Spec))
	}
	for i := range d.desired.Reservations {
		r := &d.desired.Reservations[i]
		d.eventually(after, r.Min.Slices, schema.SliceSpec{
			Provider: r.Provider, TPU: r.Min.TPU, CPU: r.Min.CPU, Memory: r.Min.Memory,
		})
	}
	for i := range d.desired.Jobs {
		want := &d.desired.Jobs[i]
		r := &want.Resources
		if j := d.next.Jobs[want.Addr]; r.Reservation != "" || j != nil && j.Status.Ended() {
			continue
		}
		d.eventually(after, r.Slices, schema.SliceSpec{Provider: r.Provider, TPU: r.TPU, CPU: r.CPU, Memory: r.Memory})
	}
	limits := map[schema.ProviderName]Amount{}
	var names []schema.ProviderName
	for i := range d.desired.Providers {
		p := &d.desired.Providers[i]
		limits[p.Name] = limitOf(*p)
		names = append(names, p.Name)
	}
	declared := len(names)
	for _, sums := range []map[schema.ProviderName]Amount{before, after} {
		for name := range sums {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names[declared:])
	for _, name := range names {
		d.plan.Capacity = append(d.plan.Capacity, Capacity{
			Provider: name, Before: before[name], After: after[name], Limit: limits[name],
		})
	}
}

// eventually adds n slices of a shape to the sum of their provider.
func (d *differ) eventually(sums map[schema.ProviderName]Amount, n int, shape schema.SliceSpec) {
	shape.Hosts = 1
	if shape.TPU != "" {
		shape.Hosts = max(1, d.shape(shape.TPU).Hosts)
	}
	sums[shape.Provider] = sums[shape.Provider].times(d.amountOf(&shape), n)
}
