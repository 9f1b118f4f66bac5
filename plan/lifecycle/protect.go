package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// The protections.
const (
	ByFiles plan.Protection = "files" // its lifecycle block
	ByState plan.Protection = "state" // what was declared last; the files say nothing of it
)

// Guard finds what must not be destroyed and would be. The rest of the Diff plans
// for a configuration in which that is as it is recorded.
func (d *Declarations) Guard() {
	g := &guard{Declarations: d}
	g.guardPools()
	g.guardJobs()
	if len(d.Plan.Blocked) == 0 {
		return
	}
	slices.SortFunc(d.Plan.Blocked, func(a, b plan.BlockedChange) int { return a.Addr.Compare(b.Addr) })
	desired := *d.Desired
	desired.Reservations = overlaid(desired.Reservations, g.pools, func(r *schema.Reservation) schema.Address { return r.Addr })
	desired.Groups = overlaid(desired.Groups, g.groups, func(g *schema.JobGroup) schema.Address { return g.Addr })
	desired.Jobs = overlaid(g.fittedJobs(), g.jobs, func(j *schema.Job) schema.Address { return j.Addr })
	d.Replan(&desired)
}

// guard collects what stays as it is recorded.
type guard struct {
	*Declarations

	pools  []schema.Reservation
	groups []schema.JobGroup
	jobs   []schema.Job

	declared map[schema.Address]bool // by the files; see declares
}

func (g *guard) guardPools() {
	for i := range g.Desired.Reservations {
		r := &g.Desired.Reservations[i]
		cur := g.Doc.Resources[r.Addr]
		if !r.Lifecycle.PreventDestroy || cur.Reservation == nil {
			continue
		}
		if change := change.ResourceChange(r.Addr, cur, state.Resource{Reservation: r}); change.Verb == plan.VerbReplace && g.hasPool(r.Addr) {
			kept := *cur.Reservation
			kept.Lifecycle = r.Lifecycle
			g.refuse(change, ByFiles)
			g.pools = append(g.pools, kept)
		}
	}
	for addr, cur := range g.Doc.Resources {
		if r := cur.Reservation; r != nil && r.Lifecycle.PreventDestroy && !g.declares(addr) && g.hasPool(addr) {
			g.refuse(change.Removal(addr, cur), ByState)
			g.pools = append(g.pools, *r)
		}
	}
}

// fittedJobs are the declared jobs, with the shape of the reservations that stay.
func (g *guard) fittedJobs() []schema.Job {
	return change.Changing(g.Desired.Jobs, func(job *schema.Job) *schema.Job { return g.fitted(job) })
}

func (g *guard) fitted(job *schema.Job) *schema.Job {
	if job.Resources.Reservation == "" {
		return job
	}
	for i := range g.pools {
		if g.pools[i].Addr.Scoped() == job.Resources.Reservation {
			return change.Fitted(job, &g.pools[i])
		}
	}
	return job
}

func (g *guard) guardJobs() {
	for i := range g.Desired.Jobs {
		want := &g.Desired.Jobs[i]
		if !want.Lifecycle.PreventDestroy {
			continue
		}
		if change, refused := g.IsBlocked(g.fitted(want)); refused {
			g.refuse(change, ByFiles)
			g.keepJob(want)
		}
	}
	for addr, j := range g.Doc.Jobs {
		if j.Spec.Lifecycle.PreventDestroy && !g.declares(addr) && g.isThere(j) {
			g.refuse(plan.Change{Addr: addr, Verb: plan.VerbDelete, Attrs: change.ChangedAttrs(change.JobAttrs(j.Spec), nil)}, ByState)
			g.keepSpec(*j.Spec)
			g.keepGroup(addr)
		}
	}
}

// IsBlocked reports whether a job must not be changed as it is asked for.
func (d *Declarations) IsBlocked(want *schema.Job) (plan.Change, bool) {
	j := d.taken(want)
	if j == nil || !d.isThere(j) {
		return plan.Change{}, false
	}
	change := d.changeOf(want, j)
	return change, change.Verb == plan.VerbReplace
}

// keepJob has a declared job stay as it is.
func (g *guard) keepJob(want *schema.Job) {
	j := g.Next.Jobs[want.Addr]
	kept := *j.Spec
	kept.Lifecycle = change.InForce(want, j)
	g.keepSpec(kept)
}

// keepSpec has a job stay as it is recorded, also where it was to be replaced by
// itself: that is asked for once, and was.
func (g *guard) keepSpec(spec schema.Job) {
	g.jobs = append(g.jobs, spec)
	if g.Next.Jobs[spec.Addr].Replace {
		g.Edit(spec.Addr).Replace = false
	}
}

// keepGroup has the group of a job stay that is declared no more.
func (g *guard) keepGroup(addr schema.Address) {
	group := addr.GroupAddress()
	cur := g.Doc.Resources[group].Group
	kept := slices.ContainsFunc(g.groups, func(of schema.JobGroup) bool { return of.Addr == group })
	if cur != nil && !kept && !g.declares(group) {
		g.groups = append(g.groups, *cur)
	}
}

// overlaid returns a list in address order with the items of another one, each in
// place of one of its address.
func overlaid[T any](list, over []T, addr func(*T) schema.Address) []T {
	if len(over) == 0 {
		return list
	}
	replaced := make(map[schema.Address]bool, len(over))
	for i := range over {
		replaced[addr(&over[i])] = true
	}
	out := slices.DeleteFunc(slices.Clone(list), func(item T) bool { return replaced[addr(&item)] })
	out = append(out, over...)
	slices.SortFunc(out, func(a, b T) int { return addr(&a).Compare(addr(&b)) })
	return out
}

// declares reports whether the files declare an address.
func (g *guard) declares(addr schema.Address) bool {
	if g.declared == nil {
		g.declared = map[schema.Address]bool{}
		for i := range g.Desired.Reservations {
			g.declared[g.Desired.Reservations[i].Addr] = true
		}
		for i := range g.Desired.Groups {
			g.declared[g.Desired.Groups[i].Addr] = true
		}
		for i := range g.Desired.Jobs {
			g.declared[g.Desired.Jobs[i].Addr] = true
		}
	}
	return g.declared[addr]
}

// isThere reports whether there is something of a job to be lost: it has run, or
// has slices. What was never given anything may change as it likes.
func (d *Declarations) isThere(j *state.Job) bool {
	return j.Attempt > 0 || slices.ContainsFunc(j.Slices, d.isUp)
}

// hasPool reports whether there are slices of a reservation to be lost.
func (d *Declarations) hasPool(addr schema.Address) bool {
	for name, s := range d.Next.Slices {
		if s.Spec.Owner == addr && d.isUp(name) {
			return true
		}
	}
	return false
}

// isUp reports whether a slice is there, as far as is known.
func (d *Declarations) isUp(name string) bool {
	_, listed := d.Listed[name]
	s := d.Next.Slices[name]
	return listed || s != nil && s.Listed
}

// refuse notes that a change is shown and not made.
func (d *Declarations) refuse(change plan.Change, by plan.Protection) {
	if d.shown == nil {
		d.shown = map[schema.Address]plan.Change{}
	}
	d.shown[change.Addr] = change
	d.Plan.Blocked = append(d.Plan.Blocked, plan.BlockedChange{Addr: change.Addr, Verb: change.Verb, By: by, Detail: blockedDetail(&change)})
}

// ShowBlocked puts the changes that are refused in the place of what is done instead.
func (d *Declarations) ShowBlocked() {
	if len(d.shown) == 0 {
		return
	}
	changes := d.MutableChanges()
	for i := range changes {
		if change, blocked := d.shown[changes[i].Addr]; blocked {
			changes[i] = change
		}
	}
}

func blockedDetail(c *plan.Change) string {
	if c.Verb == plan.VerbDelete {
		return fmt.Sprintf("%s would be deleted, and was last applied with prevent_destroy. To allow that, declare it with prevent_destroy = false and apply, then try again. "+
			"To release it from the state and leave it running, use a removed block with destroy = false, or fray state rm %s.", c.Addr, quoteArg(c.Addr))
	}
	why := c.Reason
	if why == "" {
		var paths []string
		for i := range c.Attrs {
			if c.Attrs[i].Verb == plan.VerbReplace {
				paths = append(paths, c.Attrs[i].Path)
			}
		}
		why = strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s would be replaced (%s), and has prevent_destroy. Leave it as it was, or set prevent_destroy = false and apply again; its slices are then deleted and made anew.", c.Addr, why)
}
