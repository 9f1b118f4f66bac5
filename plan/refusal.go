package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Refusal is a change that a plan shows and does not make: what it would destroy
// has prevent_destroy. All else that the plan holds is as if nothing else had been
// asked of that thing than what is recorded. Whoever asks for a plan with refusals
// gets none of it; a watch that finds itself with one does the rest.
type Refusal struct {
	Addr   schema.Address `json:"address"`
	Verb   Verb           `json:"action"` // VerbReplace or VerbDelete
	By     Protection     `json:"by"`
	Detail string         `json:"detail"` // what would happen, and what to do to allow it
}

// Protection is where it is said that something must not be destroyed.
type Protection string

// The protections.
const (
	ByFiles Protection = "files" // its lifecycle block
	ByState Protection = "state" // what was declared last; the files say nothing of it
)

// guard finds what must not be destroyed and would be. The rest of the Diff plans
// for a configuration in which that is as it is recorded.
func (d *differ) guard() {
	g := &guard{differ: d}
	g.guardPools()
	g.guardJobs()
	if len(d.plan.Refusals) == 0 {
		return
	}
	slices.SortFunc(d.plan.Refusals, func(a, b Refusal) int { return a.Addr.Compare(b.Addr) })
	desired := *d.desired
	desired.Reservations = overlaid(desired.Reservations, g.pools, func(r *schema.Reservation) schema.Address { return r.Addr })
	desired.Groups = overlaid(desired.Groups, g.groups, func(g *schema.JobGroup) schema.Address { return g.Addr })
	desired.Jobs = overlaid(g.fittedJobs(), g.jobs, func(j *schema.Job) schema.Address { return j.Addr })
	d.desired, d.families = &desired, nil
}

// guard collects what stays as it is recorded.
type guard struct {
	*differ

	pools  []schema.Reservation
	groups []schema.JobGroup
	jobs   []schema.Job

	declared map[schema.Address]bool // by the files; see declares
}

func (g *guard) guardPools() {
	for i := range g.desired.Reservations {
		r := &g.desired.Reservations[i]
		cur := g.doc.Resources[r.Addr]
		if !r.Lifecycle.PreventDestroy || cur.Reservation == nil {
			continue
		}
		if change := resourceChange(r.Addr, cur, state.Resource{Reservation: r}); change.Verb == VerbReplace && g.hasPool(r.Addr) {
			kept := *cur.Reservation
			kept.Lifecycle = r.Lifecycle
			g.refuse(change, ByFiles)
			g.pools = append(g.pools, kept)
		}
	}
	for addr, cur := range g.doc.Resources {
		if r := cur.Reservation; r != nil && r.Lifecycle.PreventDestroy && !g.declares(addr) && g.hasPool(addr) {
			g.refuse(removal(addr, cur), ByState)
			g.pools = append(g.pools, *r)
		}
	}
}

// fittedJobs are the declared jobs, with the shape of the reservations that stay.
func (g *guard) fittedJobs() []schema.Job {
	return changing(g.desired.Jobs, func(job *schema.Job) *schema.Job { return g.fitted(job) })
}

func (g *guard) fitted(job *schema.Job) *schema.Job {
	if job.Resources.Reservation == "" {
		return job
	}
	for i := range g.pools {
		if g.pools[i].Addr.Scoped() == job.Resources.Reservation {
			return fitted(job, &g.pools[i])
		}
	}
	return job
}

func (g *guard) guardJobs() {
	for i := range g.desired.Jobs {
		want := &g.desired.Jobs[i]
		if !want.Lifecycle.PreventDestroy {
			continue
		}
		if change, refused := g.refuses(g.fitted(want)); refused {
			g.refuse(change, ByFiles)
			g.keepJob(want)
		}
	}
	for addr, j := range g.doc.Jobs {
		if j.Spec.Lifecycle.PreventDestroy && !g.declares(addr) && g.isThere(j) {
			g.refuse(Change{Addr: addr, Verb: VerbDelete, Attrs: changedAttrs(jobAttrs(j.Spec), nil)}, ByState)
			g.keepSpec(*j.Spec)
			g.keepGroup(addr)
		}
	}
}

// refuses reports whether a job must not be changed as it is asked for.
func (d *differ) refuses(want *schema.Job) (Change, bool) {
	j := d.taken(want)
	if j == nil || !d.isThere(j) {
		return Change{}, false
	}
	change := d.changeOf(want, j)
	return change, change.Verb == VerbReplace
}

// keepJob has a declared job stay as it is.
func (g *guard) keepJob(want *schema.Job) {
	j := g.next.Jobs[want.Addr]
	kept := *j.Spec
	kept.Lifecycle = inForce(want, j)
	g.keepSpec(kept)
}

// keepSpec has a job stay as it is recorded, also where it was to be replaced by
// itself: that is asked for once, and was.
func (g *guard) keepSpec(spec schema.Job) {
	g.jobs = append(g.jobs, spec)
	if g.next.Jobs[spec.Addr].Replace {
		g.edit(spec.Addr).Replace = false
	}
}

// keepGroup has the group of a job stay that is declared no more.
func (g *guard) keepGroup(addr schema.Address) {
	group := addr.GroupAddress()
	cur := g.doc.Resources[group].Group
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
		for i := range g.desired.Reservations {
			g.declared[g.desired.Reservations[i].Addr] = true
		}
		for i := range g.desired.Groups {
			g.declared[g.desired.Groups[i].Addr] = true
		}
		for i := range g.desired.Jobs {
			g.declared[g.desired.Jobs[i].Addr] = true
		}
	}
	return g.declared[addr]
}

// isThere reports whether there is something of a job to be lost: it has run, or
// has slices. What was never given anything may change as it likes.
func (d *differ) isThere(j *state.Job) bool {
	return j.Attempt > 0 || slices.ContainsFunc(j.Slices, d.isUp)
}

// hasPool reports whether there are slices of a reservation to be lost.
func (d *differ) hasPool(addr schema.Address) bool {
	for name, s := range d.next.Slices {
		if s.Spec.Owner == addr && d.isUp(name) {
			return true
		}
	}
	return false
}

// isUp reports whether a slice is there, as far as is known.
func (d *differ) isUp(name string) bool {
	_, listed := d.slices[name]
	s := d.next.Slices[name]
	return listed || s != nil && s.Seen
}

// refuse notes that a change is shown and not made.
func (d *differ) refuse(change Change, by Protection) {
	if d.shown == nil {
		d.shown = map[schema.Address]Change{}
	}
	d.shown[change.Addr] = change
	d.plan.Refusals = append(d.plan.Refusals, Refusal{Addr: change.Addr, Verb: change.Verb, By: by, Detail: refusalDetail(&change)})
}

// showRefused puts the changes that are refused in the place of what is done instead.
func (d *differ) showRefused() {
	if len(d.shown) == 0 {
		return
	}
	for i := range d.plan.Changes {
		if change, refused := d.shown[d.plan.Changes[i].Addr]; refused {
			d.plan.Changes[i] = change
		}
	}
}

func refusalDetail(c *Change) string {
	if c.Verb == VerbDelete {
		return fmt.Sprintf("%s would be deleted, and was last applied with prevent_destroy. To allow that, declare it with prevent_destroy = false and apply, then try again. "+
			"To let go of it and leave it running, use a removed block with destroy = false, or fray state rm %s.", c.Addr, quoteArg(c.Addr))
	}
	why := c.Reason
	if why == "" {
		var paths []string
		for i := range c.Attrs {
			if c.Attrs[i].Verb == VerbReplace {
				paths = append(paths, c.Attrs[i].Path)
			}
		}
		why = strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s would be replaced (%s), and has prevent_destroy. Leave it as it was, or set prevent_destroy = false and apply again; its slices are then deleted and made anew.", c.Addr, why)
}
