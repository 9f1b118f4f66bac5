package capacity

import (
	"fmt"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// Check refuses at once what could never be placed, whatever else runs: a gang
// or group larger than its reservation's pool, a job, group or pool larger than
// its provider.
func Check(desired *schema.Desired) []plan.Problem {
	c := &checker{
		sizer:  &snapshot.Draft{},
		drawn:  map[placement]int{},
		needed: map[placement]plan.Amount{},
	}
	pools := map[string]*schema.Reservation{}
	for i := range desired.Reservations {
		r := &desired.Reservations[i]
		pools[r.Addr.Scoped()] = r
		spec := plan.PoolSlice("", r, 0)
		c.need(placement{unit: r.Addr, from: string(r.Provider)}, plan.Amount{}.Times(c.sizer.AmountOf(&spec), r.Min.Slices))
	}
	for i := range desired.Jobs {
		job := &desired.Jobs[i]
		if job.Resources.Reservation != "" {
			c.draw(job, pools[job.Resources.Reservation])
			continue
		}
		r := &smallEnough(desired, job).Resources
		spec := schema.SliceSpec{TPU: r.TPU, GPU: r.GPU, CPU: r.CPU, Memory: r.Memory, Hosts: 1}
		p, need := placement{unit: UnitOf(job), from: string(r.Provider)}, plan.Amount{}.Times(c.sizer.AmountOf(&spec), r.Slices)
		if p.unit == job.Addr && c.fits(desired.Providers, p.from, need) {
			continue // nothing is placed with it
		}
		c.need(p, need)
	}
	c.pools(pools)
	c.packed(pools)
	c.providers(desired.Providers)
	c.gpus(desired)
	c.spaces(desired)
	return c.problems
}

// fits reports whether a provider could ever hold what is needed of it.
func (c *checker) fits(providers []schema.Provider, from string, need plan.Amount) bool {
	return !slices.ContainsFunc(providers, func(p schema.Provider) bool {
		return string(p.Name) == from && need.Exceeds(plan.Amount{}, LimitOf(p))
	})
}

// placement is what is placed whole, from one pool or provider.
type placement struct {
	unit schema.Address
	from string
}

type checker struct {
	sizer    *snapshot.Draft
	drawn    map[placement]int // slices of reservations, of groups
	needed   map[placement]plan.Amount
	groups   []placement // the keys of drawn, as they came
	order    []placement // the keys of needed
	packings map[placement]*packing
	packs    []placement // the keys of packings
	problems []plan.Problem
}

// UnitOf is what a job is placed with.
func UnitOf(job *schema.Job) schema.Address {
	if job.Addr.Group != "" {
		return job.Addr.GroupAddress()
	}
	return job.Addr
}

func (c *checker) need(p placement, more plan.Amount) {
	if _, seen := c.needed[p]; !seen {
		c.order = append(c.order, p)
	}
	c.needed[p] = c.needed[p].Plus(more)
}

func (c *checker) draw(job *schema.Job, pool *schema.Reservation) {
	if pool == nil {
		return // a dangling reference is the language's to refuse
	}
	c.pack(job, pool)
	if job.Resources.Packed {
		return
	}
	if need, most := job.Resources.Slices, max(pool.Min.Slices, pool.Max.Slices); need > most {
		c.problems = append(c.problems, plan.Problem{
			Addr: job.Addr, Attribute: "resources.slices",
			Summary: "Larger than its reservation",
			Detail: fmt.Sprintf("%s needs %d slices at once, but %s has %d at most (its max). Ask for fewer slices or raise max.slices.",
				job.Addr, need, pool.Addr, most),
		})
		return
	}
	spec := plan.PoolSlice("", pool, 0)
	c.need(placement{unit: UnitOf(job), from: string(pool.Provider)}, plan.Amount{}.Times(c.sizer.AmountOf(&spec), job.Resources.Slices))
	if job.Addr.Group == "" {
		return
	}
	p := placement{unit: UnitOf(job), from: pool.Addr.Scoped()}
	if _, seen := c.drawn[p]; !seen {
		c.groups = append(c.groups, p)
	}
	c.drawn[p] += job.Resources.Slices
}

func (c *checker) pools(pools map[string]*schema.Reservation) {
	for _, p := range c.groups {
		need := c.drawn[p]
		pool := pools[p.from]
		if most := max(pool.Min.Slices, pool.Max.Slices); need > most {
			c.problems = append(c.problems, plan.Problem{
				Addr: p.unit, Summary: "Larger than its reservation",
				Detail: fmt.Sprintf("The jobs of %s are placed together and need %d slices at once, but %s has %d at most (its max). Ask for fewer slices, raise max.slices, or take jobs out of the group.",
					p.unit, need, pool.Addr, most),
			})
		}
	}
}

func (c *checker) providers(providers []schema.Provider) {
	for _, p := range c.order {
		need := c.needed[p]
		for i := range providers {
			if string(providers[i].Name) != p.from {
				continue
			}
			if limit := LimitOf(providers[i]); need.Exceeds(plan.Amount{}, limit) {
				c.problems = append(c.problems, plan.Problem{
					Addr: p.unit, Summary: "Larger than its provider",
					Detail: fmt.Sprintf("%s needs all of its slices at once, but provider %s could never hold them: %s. Make it smaller or raise the provider's limit.", p.unit, p.from, shortage(need, plan.Amount{}, limit)),
				})
			}
		}
	}
}
