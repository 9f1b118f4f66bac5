package capacity

import (
	"fmt"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// spaces refuses what is larger than its namespace, or user of one, may ever hold.
func (c *checker) spaces(desired *schema.Desired) {
	s := &Accounts{declared: map[string]*schema.Namespace{}, spaces: map[string]*Account{}}
	for i := range desired.Namespaces {
		n := &desired.Namespaces[i]
		s.declared[n.Addr.Scoped()] = n
	}
	if len(s.declared) == 0 {
		return
	}
	type part struct {
		unit schema.Address
		of   *Account
	}
	needs := map[part]snapshot.Load{}
	var order []part
	for i := range desired.Jobs {
		job := &desired.Jobs[i]
		if s.declared[job.Namespace] == nil {
			continue
		}
		for _, a := range s.Of(job.Namespace, job.User) {
			p := part{unit: UnitOf(job), of: a}
			if _, seen := needs[p]; !seen {
				order = append(order, p)
			}
			needs[p] = needs[p].Plus(c.sizer.LoadOf(smallEnough(desired, job)), job.Resources.Slices)
		}
	}
	for _, p := range order {
		if need := needs[p]; need.Exceeds(snapshot.Load{}, p.of.Max) {
			c.problems = append(c.problems, plan.Problem{
				Addr: p.unit, Summary: "Larger than its namespace",
				Detail: fmt.Sprintf("%s needs all of its slices at once, but %s. Make it smaller or raise the limit.", p.unit, p.of.Name+": "+SpaceShortage(need, snapshot.Load{}, p.of.Max)),
			})
		}
	}
}

// smallEnough is a job on the first of its alternatives that the limits of its provider and
// namespace leave room for; on the first where none fits.
func smallEnough(desired *schema.Desired, job *schema.Job) *schema.Job {
	r := &job.Resources
	if len(r.Accelerators) == 0 {
		return job
	}
	sizer := &snapshot.Draft{}
	for _, a := range r.Accelerators {
		as := job.As(a)
		spec := plan.UnnamedSlice("", as, 0)
		need, load := plan.Amount{}.Times(sizer.AmountOf(&spec), r.Slices), snapshot.Load{}.Plus(sizer.LoadOf(as), r.Slices)
		fits := true
		for i := range desired.Providers {
			p := &desired.Providers[i]
			fits = fits && (p.Name != r.Provider || p.GPU.Has(a.GPU()) && !need.Exceeds(plan.Amount{}, LimitOf(*p)))
		}
		for i := range desired.Namespaces {
			n := &desired.Namespaces[i]
			fits = fits && (n.Addr.Scoped() != job.Namespace || n.MaxChips == 0 || load.Chips <= n.MaxChips)
		}
		if fits {
			return as
		}
	}
	return job.As(r.Accelerators[0])
}
