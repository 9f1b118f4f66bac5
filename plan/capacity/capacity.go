package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// LimitOf returns the most that a provider may be asked for; zero fields are unlimited.
func LimitOf(p schema.Provider) plan.Amount {
	return plan.Amount{Slices: p.Slices, CPU: p.CPU, Memory: p.Memory, GPUs: p.GPU.Count}
}

// Used is what a provider's limit is spent on: all slices that are there or have
// been asked for, wanted or not, until it is gone.
func (d *Zones) Used(provider schema.ProviderName) plan.Amount {
	if d.Spent == nil {
		d.Spent = map[schema.ProviderName]plan.Amount{}
		if d.Rest != nil {
			maps.Copy(d.Spent, d.Rest.Spent)
		}
		for name, s := range d.Next.Slices {
			if _, listed := d.Listed[name]; !listed {
				d.Spend(s.Spec, 1)
			}
		}
		for _, st := range d.Listed {
			d.Spend(st.Spec, 1)
		}
		for _, st := range d.Unmanaged {
			d.Spend(st.Spec, 1)
		}
	}
	return d.Spent[provider]
}

// Lacks says why the slices do not fit into what their providers have left, nothing
// when they do. Slices that are there already need nothing more.
func (d *Zones) Lacks(specs []schema.SliceSpec) plan.Reason {
	for i := range d.Desired.Providers {
		p := &d.Desired.Providers[i]
		limit := LimitOf(*p)
		if limit == (plan.Amount{}) {
			continue
		}
		need := d.NewOf(p.Name, specs)
		if need == (plan.Amount{}) {
			continue
		}
		if used := d.Used(p.Name); need.Exceeds(used, limit) {
			return plan.Because(plan.WaitLimit, fmt.Sprintf("provider %s: %s", p.Name, shortage(need, used, limit)))
		}
	}
	return plan.Reason{}
}

// Plural returns the ending of a noun of which there are many.
func Plural(many bool) string {
	if many {
		return "s"
	}
	return ""
}

// shortage says which part of a limit is exceeded.
func shortage(need, used, limit plan.Amount) string {
	var short []string
	if limit.Slices > 0 && used.Slices+need.Slices > limit.Slices {
		short = append(short, fmt.Sprintf("needs %d more slice%s, %d of %d are in use", need.Slices, Plural(need.Slices != 1), used.Slices, limit.Slices))
	}
	if limit.GPUs > 0 && need.GPUs > 0 && used.GPUs+need.GPUs > limit.GPUs {
		short = append(short, fmt.Sprintf("needs %d more GPU%s, %d of %d are in use", need.GPUs, Plural(need.GPUs != 1), used.GPUs, limit.GPUs))
	}
	if limit.CPU > 0 && need.CPU > 0 && used.CPU+need.CPU > limit.CPU {
		short = append(short, fmt.Sprintf("needs %g more CPU%s, %g of %g are in use", need.CPU, Plural(need.CPU != 1), used.CPU, limit.CPU))
	}
	if limit.Memory > 0 && need.Memory > 0 && used.Memory+need.Memory > limit.Memory {
		short = append(short, fmt.Sprintf("needs %s more memory, %s of %s are in use", need.Memory, used.Memory, limit.Memory))
	}
	return strings.Join(short, "; ")
}

// Shape is what slices that take equally much have in common.
type Shape struct {
	provider schema.ProviderName
	tpu      string
	gpu      schema.GPU
	hosts    int
	cpu      float64
	memory   schema.Bytes
}

// Demand counts slices by their shape, and how many owners ask for them. Sums
// made from counts do not depend on who was counted first.
type Demand map[Shape]struct{ owners, slices int }

// Add counts owners and slices of a shape; negative numbers take them out.
func (c Demand) Add(s Shape, owners, slices int) {
	sum := c[s]
	sum.owners += owners
	sum.slices += slices
	c[s] = sum
	if sum.owners == 0 {
		delete(c, s)
	}
}

// Demand is what all that is declared will take in the end.
func (d *Zones) Demand() Demand {
	count := d.JobDemand()
	d.AddPools(count)
	return count
}

// AddPools adds the slices of reservations, as many as they have in this plan.
func (d *Zones) AddPools(count Demand) {
	for i := range d.Desired.Reservations {
		r := &d.Desired.Reservations[i]
		slice := plan.PoolSlice(d.Stack, r, 0)
		count.Add(d.ShapeOf(&slice), 1, len(d.PoolOf(r.Addr.Scoped()).Specs))
	}
}

// JobDemand is Demand without reservations.
func (d *Zones) JobDemand() Demand {
	count := Demand{}
	for i := range d.Desired.Jobs {
		want := &d.Desired.Jobs[i]
		if s, asks := d.Asks(want, d.JobAt(want.Addr), d.Next); asks {
			count.Add(s, 1, want.Resources.Slices)
		}
	}
	return count
}

// Asks is the shape of the slices that a job, which doc records as j, will have of its own by doc,
// if it will.
func (d *Zones) Asks(want *schema.Job, j *state.Job, doc *state.Document) (Shape, bool) {
	r := &want.As(snapshot.AcceleratorIn(doc, want, j)).Resources
	if r.Reservation != "" || j != nil && j.Status.Ended() {
		return Shape{}, false
	}
	return d.ShapeOf(&schema.SliceSpec{Provider: r.Provider, TPU: r.TPU, GPU: r.GPU, CPU: r.CPU, Memory: r.Memory}), true
}

// ShapeOf is the shape of a slice, whose hosts need not be filled in.
func (d *Zones) ShapeOf(spec *schema.SliceSpec) Shape {
	hosts := cmp.Or(spec.Hosts, 1)
	if spec.Hosts == 0 && spec.TPU != "" {
		hosts = max(1, d.Accelerator(spec.TPU).Hosts)
	}
	return Shape{provider: spec.Provider, tpu: spec.TPU, gpu: spec.GPU, hosts: hosts, cpu: spec.CPU, memory: spec.Memory}
}

// sums are the amounts of a count, by provider.
func (d *Zones) sums(count Demand) map[schema.ProviderName]plan.Amount { return count.Amounts(d.Draft) }

// Amounts are the sums of a count, by provider.
func (c Demand) Amounts(d *snapshot.Draft) map[schema.ProviderName]plan.Amount {
	order := slices.SortedFunc(maps.Keys(c), func(a, b Shape) int {
		return cmp.Or(cmp.Compare(a.provider, b.provider), cmp.Compare(a.tpu, b.tpu), cmp.Compare(a.gpu.Type, b.gpu.Type), cmp.Compare(a.gpu.Count, b.gpu.Count), cmp.Compare(a.hosts, b.hosts),
			cmp.Compare(a.cpu, b.cpu), cmp.Compare(a.memory, b.memory))
	})
	sums := map[schema.ProviderName]plan.Amount{}
	for _, s := range order {
		one := d.AmountOf(&schema.SliceSpec{Provider: s.provider, TPU: s.tpu, GPU: s.gpu, Hosts: s.hosts, CPU: s.cpu, Memory: s.memory})
		sums[s.provider] = sums[s.provider].Times(one, c[s].slices)
	}
	return sums
}

// CountListed adds the slices that are listed.
func (d *Zones) CountListed(count Demand) {
	for _, st := range d.Listed {
		if st.Spec.On == "" {
			count.Add(d.ShapeOf(&st.Spec), 1, 1)
		}
	}
}

// Capacity sums up what each provider holds before and after the plan, of slices that
// are listed and of those that are wanted: the declared providers in their order, then
// others that are in use. Both counts are its own to change.
func (d *Zones) Capacity(listed, wanted Demand) {
	for _, st := range d.Unmanaged {
		listed.Add(d.ShapeOf(&st.Spec), 1, 1)
		wanted.Add(d.ShapeOf(&st.Spec), 1, 1)
	}
	for _, names := range d.Warm {
		for _, name := range names {
			if d.IsKeptIdle(name) {
				wanted.Add(d.ShapeOf(&d.Next.Slices[name].Spec), 1, 1)
			}
		}
	}
	before, after := d.sums(listed), d.sums(wanted)
	limits := map[schema.ProviderName]plan.Amount{}
	var names []schema.ProviderName
	for i := range d.Desired.Providers {
		p := &d.Desired.Providers[i]
		limits[p.Name] = LimitOf(*p)
		names = append(names, p.Name)
	}
	declared := len(names)
	for _, sums := range []map[schema.ProviderName]plan.Amount{before, after} {
		for name := range sums {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names[declared:])
	for _, name := range names {
		d.Plan.Capacity = append(d.Plan.Capacity, plan.Capacity{
			Provider: name, Before: before[name], After: after[name], Limit: limits[name],
		})
	}
}

// Clone returns a copy that may be changed.
func (c Demand) Clone() Demand { return maps.Clone(c) }
