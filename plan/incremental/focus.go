package incremental

import (
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A plan needs neither the records of steady jobs nor the slices that these have, but for
// what they share with jobs that are decided about (share.go): it is made on a part of the
// document and of what was observed, with the stages that make it on all. What it finds is
// then carried over into the whole. In a chain of a thousand jobs that part has a few of them.

// focus tells the slices of steady jobs, about which there is nothing to decide, from
// all others.
type focus struct {
	on      bool                      // the stack is one of which a part may be planned
	partial bool                      // the last plan was made on one
	steady  map[string]*observedSlice // slices of steady jobs, by name
	others  map[string]bool           // all others that are recorded, listed or have a mailbox
	sums    sums                      // of those of steady jobs
	heard   heardHosts                // of those of steady jobs
	lists   map[schema.ProviderName]*listing
	there   map[string]bool // which others were listed last
	look    int             // the number of the last look
	mail    uint64          // the number of the last observation by its observer
}

// refocus begins anew after a plan that decided about everything. Jobs are judged next.
func (p *Planner) refocus(d *reconcile.Reconciler) {
	clear(p.seen)
	p.focus = focus{}
	if len(d.Next.Conditions) == 0 {
		p.focus = newFocus()
	}
}

func newFocus() focus {
	return focus{
		on: true, steady: map[string]*observedSlice{}, others: map[string]bool{}, sums: newSums(),
		heard: heardHosts{}, lists: map[schema.ProviderName]*listing{}, there: map[string]bool{},
	}
}

// noteOthers takes in all slices that are no steady job's.
func (f *focus) noteOthers(d *reconcile.Reconciler) {
	if !f.on {
		return
	}
	note := func(name string) {
		if f.steady[name] == nil {
			f.others[name] = true
		}
	}
	for name := range d.Next.Slices {
		note(name)
	}
	for name := range d.Obs.Assignments {
		note(name)
	}
	for name := range d.Obs.Hosts {
		note(name)
	}
	for name := range d.Obs.Booting {
		note(name)
	}
	for _, inv := range d.Obs.Inventories {
		for i := range inv.Slices {
			if st := &inv.Slices[i]; st.Spec.Stack == d.Stack {
				note(st.Spec.Name)
			}
		}
	}
}

// addSteady takes in that a job is steady as it was observed. It reports false if others have
// to do with its slices, or a reading of them is in doubt: then the job is not steady.
func (f *focus) addSteady(d *reconcile.Reconciler, j *state.Job, job int, seen observation) bool {
	if !f.on {
		return true
	}
	for i := range seen {
		if !isUndisputed(d, j, &seen[i]) {
			return false
		}
	}
	holder, each := capacity.HolderOf(d.Pools, j)
	for i := range seen {
		s := &seen[i]
		s.job, s.holder, s.load = job, holder, each
		f.addSlice(d, s)
		f.sums.add(s, 1)
	}
	return true
}

// addSlice takes in a slice of which nothing is to be decided.
func (f *focus) addSlice(d *reconcile.Reconciler, s *observedSlice) {
	spec := &d.Next.Slices[s.name].Spec
	s.shape, s.all, s.place, s.pool = d.ShapeOf(&s.status.Spec), d.SliceLoad(spec), plan.StockPlace(spec), ""
	if spec.Owner.Kind == schema.KindReservation {
		s.pool = spec.Owner.Scoped()
	}
	f.steady[s.name] = s
	f.heard.add(s.earliest, 1)
	delete(f.others, s.name)
}

// isUndisputed reports whether nothing but its job has to do with a slice, and no reading of it
// is in doubt.
func isUndisputed(d *reconcile.Reconciler, j *state.Job, seen *observedSlice) bool {
	s := d.Next.Slices[seen.name]
	if s == nil || !isWhole(d, s, seen.status) || !j.YieldsTo.IsZero() {
		return false
	}
	if r := &j.Spec.Resources; s.Spec.Owner != j.Spec.Addr && (r.Reservation == "" || s.Spec.Owner != schema.ScopedAddress(schema.KindReservation, r.Reservation)) {
		return false
	}
	a := d.Obs.Assignments[seen.name]
	return len(a.PackedTasks) == 0 && (a.Run == nil || a.Run.JobID == j.ID)
}

// isWhole reports whether a slice is up and to stay, has no packed tasks, and no reading of it is
// in doubt.
func isWhole(d *reconcile.Reconciler, s *state.Slice, st *schema.SliceStatus) bool {
	if !s.Listed || s.UpAt.IsZero() || !s.Terminating.IsZero() || s.Spec.Fixed() != st.Spec.Fixed() ||
		st.Phase == schema.SliceDead || st.Phase == schema.SliceDeleting || len(d.Packed[s.Spec.Name]) > 0 {
		return false
	}
	return !d.HasDoubt(s.Spec.Name)
}

// dropSteady takes in that a job is to be decided about again.
func (f *focus) dropSteady(seen observation) {
	if !f.on {
		return
	}
	for i := range seen {
		s := &seen[i]
		if f.steady[s.name] == s {
			delete(f.steady, s.name)
			f.sums.add(s, -1)
			f.heard.add(s.earliest, -1)
			f.others[s.name] = true
			if s.list != nil {
				s.list.drop(s)
				f.there[s.name] = true
			}
		}
	}
}

// near returns the part of an input that the next plan is made on. It reports false where
// that has to be made on all.
func (p *Planner) near(in *snapshot.Input) (*near, bool) {
	f := &p.focus
	if !f.on || !isSeenWhole(in) {
		return nil, false
	}
	f.look++
	n := &near{in: *in, whole: in.Doc, dirty: slices.Clone(p.dirty)}
	listed, changed, once := f.list(in)
	if !once {
		return nil, false
	}
	if n.missing = f.isMissing(in, listed); n.missing {
		return n, true
	}
	changed = append(changed, f.readMail(in.Obs)...)
	unsettle := func(name string) {
		listed = append(listed, f.listedOf(p.pools[name].idle)...)
		p.unsettle(name)
	}
	mark := func(i int) {
		if p.conditions[i] == dirty {
			return
		}
		listed = append(listed, f.listedOf(p.seen[i])...)
		p.markDirty(i)
		n.dirty = append(n.dirty, i)
	}
	for _, s := range append(changed, f.silent(n)...) {
		if s.job == ofNoJob {
			unsettle(s.pool)
		} else {
			mark(s.job)
		}
	}
	for _, i := range p.schedules.due(in.Doc, in.Now) {
		mark(i)
	}
	for name := range f.others {
		run := in.Obs.Assignments[name].Run
		if run == nil {
			continue
		}
		if j, known := p.byID[run.JobID]; known && run.Attempt > j.attempt {
			mark(j.index)
		}
	}
	n.wakeUnheard(f.heard.first())
	for _, i := range p.check.due(in.Now, len(p.conditions)) {
		if was := p.conditions[i]; was != dirty {
			p.check.ask(i, was)
			mark(i)
		}
	}
	slices.Sort(n.dirty)
	beside := p.besides(in.Doc, n.dirty, listed)
	for name := range beside.pools {
		unsettle(name)
	}
	sums := f.sums.clone()
	var names []string
	for i := range beside.jobs {
		listed = append(listed, f.listedOf(p.seen[i])...)
		for k := range p.seen[i] {
			names = append(names, p.seen[i][k].name)
			sums.add(&p.seen[i][k], -1)
		}
	}
	n.beside, n.listed = beside, sums.listed
	n.in.Rest = sums.rest(func(addr schema.Address) bool {
		i, declared := p.index[addr]
		return declared && len(p.seen[i]) > 0 && !beside.jobs[i]
	})
	n.in.Desired = p.desiredWith(beside.pools)
	n.in.Obs = f.observed(in, listed, names)
	n.in.Doc = p.recordsOf(in.Doc, n.in.Obs, n, names)
	return n, true
}

// isSeenWhole reports whether every provider has answered, and none was amiss before.
func isSeenWhole(in *snapshot.Input) bool {
	for _, inv := range in.Obs.Inventories {
		if len(inv.Unlisted)+len(inv.Skipped) > 0 {
			return false
		}
	}
	return len(in.Obs.Unreachable)+len(in.Doc.Conditions) == 0
}

// readMail compares the assignments and reports of the slices of steady jobs with what they
// were, and returns those that differ. It notes which others have any.
func (f *focus) readMail(obs *plan.Observed) (changed []*observedSlice) {
	compare := func(name string) {
		s := f.steady[name]
		if s == nil {
			f.others[name] = true
			return
		}
		hosts := obs.Hosts[name]
		same := func(a, b plan.Host) bool { return a.SameReport(&b) }
		if obs.Assignments[name].Object != s.assigned || !slices.EqualFunc(hosts, s.hosts, same) {
			changed = append(changed, s)
		}
		f.heard.add(s.earliest, -1)
		s.hear(hosts)
		f.heard.add(s.earliest, 1)
	}
	follows := f.mail != 0 && obs.Look == f.mail+1
	f.mail = obs.Look
	if follows {
		for name := range obs.Changed {
			compare(name)
		}
		return changed
	}
	for name := range f.steady {
		compare(name)
	}
	for name := range obs.Assignments {
		if f.steady[name] == nil {
			f.others[name] = true
		}
	}
	for name := range obs.Hosts {
		if f.steady[name] == nil {
			f.others[name] = true
		}
	}
	for name := range obs.Booting {
		if f.steady[name] == nil {
			f.others[name] = true
		}
	}
	return changed
}

// observed is what was observed of all but the slices of steady jobs, and of some of these. Of
// those that are no more nothing is kept.
func (f *focus) observed(in *snapshot.Input, listed []listedSlice, some []string) *plan.Observed {
	part := *in.Obs
	part.Inventories = make(map[schema.ProviderName]schema.Inventory, len(in.Obs.Inventories))
	for provider := range in.Obs.Inventories {
		part.Inventories[provider] = schema.Inventory{}
	}
	there := make(map[string]bool, len(listed))
	f.there = there
	for _, l := range listed {
		inv := part.Inventories[l.provider]
		inv.Slices = append(inv.Slices, *l.status)
		part.Inventories[l.provider] = inv
		there[l.status.Spec.Name] = true
	}
	size := len(f.others) + len(some)
	part.Assignments, part.Hosts = make(map[string]plan.Assigned, size), make(map[string][]plan.Host, size)
	part.Booting = map[string]bool{}
	for _, name := range some {
		part.Assignments[name], part.Hosts[name] = in.Obs.Assignments[name], in.Obs.Hosts[name]
		if in.Obs.Booting[name] {
			part.Booting[name] = true
		}
	}
	for name := range f.others {
		a, assigned := in.Obs.Assignments[name]
		if assigned {
			part.Assignments[name] = a
		}
		hosts, reported := in.Obs.Hosts[name]
		if reported {
			part.Hosts[name] = hosts
		}
		if in.Obs.Booting[name] {
			part.Booting[name] = true
		}
		if !assigned && !reported && !in.Obs.Booting[name] && !there[name] && in.Doc.Slices[name] == nil {
			delete(f.others, name)
		}
	}
	return &part
}
