package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// amountOf is the capacity that a slice takes.
func (d *differ) amountOf(spec *schema.SliceSpec) Amount {
	if spec.On != "" { // a part of another one
		return Amount{}
	}
	a := Amount{Slices: 1, Hosts: spec.Hosts}
	if spec.TPU == "" {
		a.CPU, a.Memory = spec.CPU, spec.Memory
		return a
	}
	a.Chips = d.accelerator(spec.TPU).Chips
	return a
}

// accelerator is that of a TPU type, the zero one for no valid type. Many
// slices have few types.
func (d *differ) accelerator(tpu string) schema.Accelerator {
	acc, seen := d.accelerators[tpu]
	if !seen {
		if d.accelerators == nil {
			d.accelerators = map[string]schema.Accelerator{}
		}
		if parsed, err := schema.ParseAccelerator(tpu); err == nil {
			acc = parsed
		}
		d.accelerators[tpu] = acc
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
		for _, st := range d.disowned {
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

// lacks says why the slices do not fit into what their providers have left, nothing
// when they do. Slices that are there already need nothing more.
func (d *differ) lacks(specs []schema.SliceSpec) reason {
	for i := range d.desired.Providers {
		p := &d.desired.Providers[i]
		limit := limitOf(*p)
		if limit == (Amount{}) {
			continue
		}
		need := d.newOf(p.Name, specs)
		if need == (Amount{}) {
			continue
		}
		if used := d.used(p.Name); need.exceeds(used, limit) {
			return because(WaitLimit, fmt.Sprintf("provider %s: %s", p.Name, shortage(need, used, limit)))
		}
	}
	return reason{}
}

func plural(many bool) string {
	if many {
		return "s"
	}
	return ""
}

// exceeds reports whether a need is more than a limit leaves beside what is used.
func (a Amount) exceeds(used, limit Amount) bool {
	return limit.Slices > 0 && used.Slices+a.Slices > limit.Slices ||
		limit.CPU > 0 && a.CPU > 0 && used.CPU+a.CPU > limit.CPU ||
		limit.Memory > 0 && a.Memory > 0 && used.Memory+a.Memory > limit.Memory
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

// shape is what slices that take equally much have in common.
type shape struct {
	provider schema.ProviderName
	tpu      string
	hosts    int
	cpu      float64
	memory   schema.Bytes
}

// demand counts slices by their shape, and how many owners ask for them. Sums
// made from counts do not depend on who was counted first.
type demand map[shape]struct{ owners, slices int }

func (c demand) add(s shape, owners, slices int) {
	sum := c[s]
	sum.owners += owners
	sum.slices += slices
	c[s] = sum
	if sum.owners == 0 {
		delete(c, s)
	}
}

// demand is what all that is declared will take in the end.
func (d *differ) demand() demand {
	count := demand{}
	for i := range d.desired.Reservations {
		r := &d.desired.Reservations[i]
		count.add(d.shapeOf(PoolSlice(d.stack, r, 0)), 1, len(d.poolOf(r.Addr.Scoped()).specs))
	}
	for i := range d.desired.Jobs {
		want := &d.desired.Jobs[i]
		if s, asks := d.asks(want, d.next.Jobs[want.Addr]); asks {
			count.add(s, 1, want.Resources.Slices)
		}
	}
	return count
}

// asks is the shape of the slices that a job will have of its own, if it will.
func (d *differ) asks(want *schema.Job, j *state.Job) (shape, bool) {
	r := &want.Resources
	if r.Reservation != "" || j != nil && j.Status.Ended() {
		return shape{}, false
	}
	return d.shapeOf(schema.SliceSpec{Provider: r.Provider, TPU: r.TPU, CPU: r.CPU, Memory: r.Memory}), true
}

// shapeOf is the shape of a slice, whose hosts need not be filled in.
func (d *differ) shapeOf(spec schema.SliceSpec) shape {
	hosts := cmp.Or(spec.Hosts, 1)
	if spec.Hosts == 0 && spec.TPU != "" {
		hosts = max(1, d.accelerator(spec.TPU).Hosts)
	}
	return shape{provider: spec.Provider, tpu: spec.TPU, hosts: hosts, cpu: spec.CPU, memory: spec.Memory}
}

// sums are the amounts of a count, by provider.
func (d *differ) sums(count demand) map[schema.ProviderName]Amount {
	order := slices.SortedFunc(maps.Keys(count), func(a, b shape) int {
		return cmp.Or(cmp.Compare(a.provider, b.provider), cmp.Compare(a.tpu, b.tpu), cmp.Compare(a.hosts, b.hosts),
			cmp.Compare(a.cpu, b.cpu), cmp.Compare(a.memory, b.memory))
	})
	sums := map[schema.ProviderName]Amount{}
	for _, s := range order {
		one := d.amountOf(&schema.SliceSpec{Provider: s.provider, TPU: s.tpu, Hosts: s.hosts, CPU: s.cpu, Memory: s.memory})
		sums[s.provider] = sums[s.provider].times(one, count[s].slices)
	}
	return sums
}

// capacity sums up what each provider holds before and after the plan: the
// declared providers in their order, then others that are in use.
func (d *differ) capacity(wanted demand) {
	listed := demand{}
	for _, st := range d.slices {
		if st.Spec.On == "" {
			listed.add(d.shapeOf(st.Spec), 1, 1)
		}
	}
	for _, st := range d.disowned {
		listed.add(d.shapeOf(st.Spec), 1, 1)
		wanted.add(d.shapeOf(st.Spec), 1, 1)
	}
	for _, names := range d.warm {
		for _, name := range names {
			if d.isKeptIdle(name) {
				wanted.add(d.shapeOf(d.next.Slices[name].Spec), 1, 1)
			}
		}
	}
	before, after := d.sums(listed), d.sums(wanted)
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
