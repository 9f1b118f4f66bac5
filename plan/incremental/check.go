package incremental

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
)

// checkWithin is how long it takes until each clean job was decided about again.
const checkWithin = time.Minute

// check has each plan decide again about some clean jobs, so that all have had their turn
// after checkWithin: a job that is taken for clean and is not would else stay as it is. What
// such a plan decides stands, and is reported.
type check struct {
	units  [][]int // of jobs that have their turn together: those of a reservation share its slices
	next   int     // of the units
	credit float64 // jobs that may have their turn
	last   time.Time

	asked     map[int]condition // the jobs of this plan that were clean
	differing []schema.Address  // those of the last plan that were to change
}

// begin starts with other jobs.
func (c *check) begin(desired *schema.Desired, drawers map[string][]int) {
	*c = check{}
	for i := range desired.Jobs {
		of := desired.Jobs[i].Resources.Reservation
		if of == "" {
			c.units = append(c.units, []int{i})
		} else if drawers[of][0] == i {
			c.units = append(c.units, drawers[of])
		}
	}
}

// due are the jobs whose turn it is, of so many.
func (c *check) due(now time.Time, jobs int) []int {
	if !c.last.IsZero() {
		c.credit += min(now.Sub(c.last), time.Second).Seconds() / checkWithin.Seconds() * float64(jobs)
	}
	c.last = now
	var due []int
	for c.credit >= 1 && len(c.units) > 0 {
		unit := c.units[c.next]
		c.next = (c.next + 1) % len(c.units)
		c.credit -= float64(len(unit))
		due = append(due, unit...)
	}
	return due
}

// ask has a plan decide about a job that is clean.
func (c *check) ask(job int, was condition) {
	if c.asked == nil {
		c.asked = map[int]condition{}
	}
	c.asked[job] = was
}

// compare notes which of the jobs that were asked about were to change, although nothing
// that they depend on has changed.
func (c *check) compare(p *Planner, d *reconcile.Reconciler, changes []plan.Change) {
	for i, was := range c.asked {
		addr := p.desired.Jobs[i].Addr
		j := d.Next.Jobs[addr]
		follows := !j.YieldsTo.IsZero() || (was == blocked || addr.Group != "") && len(d.EditedJobs) > 0
		acts := slices.ContainsFunc(j.Slices, func(name string) bool { _, acting := d.Acting[name]; return acting })
		if !follows && (acts || j != d.Doc.Jobs[addr] || changes[i].Verb != plan.VerbNone) {
			c.differing = append(c.differing, addr)
		}
	}
	slices.SortFunc(c.differing, schema.Address.Compare)
}

// Differing are the jobs that the last plan, as a check, decided about again and was to
// change, although no reason to do so was known: a plan of all would have changed them
// before. There are none unless a Planner has a defect.
func (p *Planner) Differing() []schema.Address { return p.check.differing }
