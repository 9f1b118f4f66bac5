package capacity

import (
	"fmt"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// packing is what is placed together on hosts of one reservation.
type packing struct {
	whole int           // slices drawn as such
	jobs  []*schema.Job // packed ones
}

// unfit says why the jobs of a unit can never have what they ask of a reservation
// together, nothing if they can while no other job has any of it.
func (p *packing) unfit(pool *schema.Reservation) plan.Reason {
	most := max(pool.Min.Slices, pool.Max.Slices)
	spec := plan.PoolSlice("", pool, 0)
	var rooms []*snapshot.FreeHost
	for range max(0, most-p.whole) {
		for n := range spec.Hosts {
			rooms = append(rooms, EmptyRoom(spec, n))
		}
	}
	for _, want := range largestFirst(p.jobs) {
		need := shareOf(&want.Resources)
		if short := EmptyRoom(spec, 0).Lacks(&need); !short.None() {
			return plan.Because(plan.WaitConstraint, fmt.Sprintf("a task of %s needs %s, and the hosts of %s have too little %s", want.Addr, need, pool.Addr, short.Of))
		}
		for n := range want.Resources.Slices {
			r := bestOf(rooms, &need, func(*snapshot.FreeHost) bool { return false })
			if r == nil {
				return plan.Because(plan.WaitConstraint, fmt.Sprintf("only %d of the %d tasks of %s, with %s each, fit on the %d slices that %s has at most",
					n, want.Resources.Slices, want.Addr, need, most, pool.Addr))
			}
			r.Take(&need, 1)
		}
	}
	return plan.Reason{}
}

// pack takes note of a packed job, or of slices that a unit draws beside such.
func (c *checker) pack(job *schema.Job, pool *schema.Reservation) {
	p := placement{unit: UnitOf(job), from: pool.Addr.Scoped()}
	if c.packings == nil {
		c.packings = map[placement]*packing{}
	}
	of := c.packings[p]
	if of == nil {
		of = &packing{}
		c.packings[p] = of
		c.packs = append(c.packs, p)
	}
	if job.Resources.Packed {
		of.jobs = append(of.jobs, job)
	} else {
		of.whole += job.Resources.Slices
	}
}

// packed refuses what never fits.
func (c *checker) packed(pools map[string]*schema.Reservation) {
	for _, p := range c.packs {
		of := c.packings[p]
		if len(of.jobs) == 0 {
			continue
		}
		if why := of.unfit(pools[p.from]); !why.None() {
			problem := plan.Problem{
				Addr: p.unit, Summary: "Larger than its reservation",
				Detail: fmt.Sprintf("%s is placed whole, and can never be: %s. Ask for less, or raise the reservation's slices or their size.", p.unit, why.Text),
			}
			if of.jobs[0].Addr == p.unit {
				problem.Attribute = "resources.slices"
			}
			c.problems = append(c.problems, problem)
		}
	}
}
