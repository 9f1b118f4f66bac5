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

// Where jobs share nothing but dependencies, a plan needs neither the records of steady
// jobs nor the slices that these have: it is made on a part of the document and of what
// was observed, with the stages that make it on all. What it finds is then carried over
// into the whole. In a chain of a thousand jobs that part has a few of them.

// focus tells the slices of steady jobs, about which there is nothing to decide, from
// all others.
type focus struct {
	on     bool                      // the stack is one of which a part may be planned
	steady map[string]*observedSlice // slices of steady jobs, by name
	others map[string]bool           // all others that are recorded, listed or have a mailbox
	listed capacity.Demand           // those of steady jobs, by shape
	look   int                       // the number of the last look
	mail   uint64                    // the number of the last observation by its observer
}

// sharesNothing reports whether what is decided about a job depends on others only through
// dependencies: nothing limits what they have together, and no place has failed.
func sharesNothing(d *reconcile.Reconciler) bool {
	if len(d.Desired.Reservations)+len(d.Desired.Groups)+len(d.Next.Past)+len(d.Next.ZoneHealth)+len(d.Next.Conditions) > 0 {
		return false
	}
	for i := range d.Desired.Providers {
		if capacity.LimitOf(d.Desired.Providers[i]) != (plan.Amount{}) {
			return false
		}
	}
	accounts := d.Accounts()
	for i := range d.Desired.Namespaces {
		n := &d.Desired.Namespaces[i]
		if n.MaxChips != 0 || n.MaxCPU != 0 || n.Budget != 0 || n.IdleTimeout != 0 || len(n.Users) > 0 || n.Cost != (schema.CostBudget{}) {
			return false
		}
	}
	var first *capacity.Account // by which it is decided who is next
	for i := range d.Desired.Jobs {
		want := &d.Desired.Jobs[i]
		j, r := d.Next.Jobs[want.Addr], &want.Resources
		if j.Launch != nil || r.Provider == schema.ProviderGCP || r.Reservation != "" || r.Packed || want.Addr.Group != "" {
			return false
		}
		for _, record := range []*state.Job{j, capacity.RecordAs(want, j)} {
			account := accounts.Of(capacity.SpaceOf(accounts, record), record.Spec.User)
			if first == nil {
				first = account[1]
			}
			if account[1] != first {
				return false
			}
		}
	}
	for _, s := range d.Next.Slices {
		if s.Spec.On != "" || !s.IdleSince.IsZero() {
			return false
		}
	}
	return true
}

// refocus begins anew after a plan that decided about everything. Jobs are judged next.
func (p *Planner) refocus(d *reconcile.Reconciler) {
	clear(p.seen)
	p.focus = focus{}
	if sharesNothing(d) {
		p.focus = newFocus()
	}
}

func newFocus() focus {
	return focus{on: true, steady: map[string]*observedSlice{}, others: map[string]bool{}, listed: capacity.Demand{}}
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

// addSteady takes in that a job is steady as it was observed.
func (f *focus) addSteady(d *reconcile.Reconciler, j *state.Job, job int, seen observation) {
	if !f.on {
		return
	}
	for i := range seen {
		s := &seen[i]
		if !isUndisputed(d, j, s) {
			f.on = false // rare: everything is looked at until all is decided anew
			return
		}
		s.job, s.shape = job, d.ShapeOf(&s.status.Spec)
		f.steady[s.name] = s
		f.listed.Add(s.shape, 1, 1)
		delete(f.others, s.name)
	}
}

// isUndisputed reports whether nothing but its job has to do with a slice, and no reading of it
// is in doubt.
func isUndisputed(d *reconcile.Reconciler, j *state.Job, seen *observedSlice) bool {
	s := d.Next.Slices[seen.name]
	if s == nil || s.Spec.Owner != j.Spec.Addr || !s.Listed || s.UpAt.IsZero() || !s.Terminating.IsZero() || s.Spec.Fixed() != seen.status.Spec.Fixed() {
		return false
	}
	a := d.Obs.Assignments[seen.name]
	if len(a.PackedTasks) > 0 || a.Run != nil && a.Run.JobID != j.ID {
		return false
	}
	return !slices.ContainsFunc(d.Plan.Doubts, func(doubt plan.Doubt) bool { return doubt.Slice.Name == seen.name })
}

// dropSteady takes in that a job is to be decided about again.
func (f *focus) dropSteady(seen observation) {
	if !f.on {
		return
	}
	for i := range seen {
		s := &seen[i]
		delete(f.steady, s.name)
		f.listed.Add(s.shape, -1, -1)
		f.others[s.name] = true
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
	n := &near{in: *in, whole: in.Doc, dirty: p.dirty}
	listed, once := f.list(in)
	if !once {
		return nil, false
	}
	changed := f.readMail(in.Obs)
	mark := func(i int) {
		if p.conditions[i] == dirty {
			return
		}
		listed = append(listed, f.listedOf(p.seen[i])...)
		p.markDirty(i)
		n.dirty = append(slices.Clip(n.dirty), i)
	}
	for _, i := range changed {
		mark(i)
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
	for i := range p.seen {
		if len(p.seen[i]) > 0 && !p.focus.isAsListed(p.seen[i], n, allHosts) {
			mark(i)
		}
	}
	slices.Sort(n.dirty)
	n.listed = f.listed.Clone()
	n.in.Obs = f.observed(in, listed)
	n.in.Doc = p.recordsOf(in.Doc, n.in.Obs, n.dirty)
	return n, true
}

// isSeenWhole reports whether every provider has answered, and none was amiss before.
func isSeenWhole(in *snapshot.Input) bool {
	for _, inv := range in.Obs.Inventories {
		if len(inv.Unlisted)+len(inv.Skipped) > 0 {
			return false
		}
	}
	return len(in.Obs.Unreachable) == 0 && len(in.Doc.ZoneHealth)+len(in.Doc.Conditions) == 0
}

// listedSlice is a slice as a provider lists it.
type listedSlice struct {
	provider schema.ProviderName
	status   *schema.SliceStatus
}

// list notes how the slices of steady jobs are listed, and returns the others that are. It
// reports false if one is listed twice.
func (f *focus) list(in *snapshot.Input) (others []listedSlice, once bool) {
	stack := in.Doc.Stack()
	for provider, inv := range in.Obs.Inventories {
		for i := range inv.Slices {
			st := &inv.Slices[i]
			if st.Spec.Stack != stack {
				continue
			}
			s := f.steady[st.Spec.Name]
			switch {
			case s == nil:
				f.others[st.Spec.Name] = true
				others = append(others, listedSlice{provider, st})
			case s.listed == f.look:
				return nil, false
			default:
				s.listed, s.provider, s.at = f.look, provider, st
			}
		}
	}
	return others, true
}

// listedOf is how slices are listed.
func (f *focus) listedOf(seen observation) []listedSlice {
	var found []listedSlice
	for k := range seen {
		if s := &seen[k]; s.listed == f.look {
			found = append(found, listedSlice{s.provider, s.at})
		}
	}
	return found
}

// countedHosts are the hosts of a slice whose silence a plan wakes up for.
type countedHosts uint8

const (
	allHosts countedHosts = iota
	firstHosts
)

// isAsListed reports whether slices are listed as they were, and none of their hosts has been
// silent for too long. It notes when one of those that count will have been.
func (f *focus) isAsListed(seen observation, n *near, hosts countedHosts) bool {
	heard := never
	for k := range seen {
		s := &seen[k]
		if s.listed != f.look || !sameStatus(s.at, s.status) {
			return false
		}
		if n.untilSilent(s.earliest) <= 0 {
			return false
		}
		if hosts == firstHosts {
			heard = min(heard, s.first)
		} else {
			heard = min(heard, s.earliest)
		}
	}
	if heard != never {
		n.wakeAt(n.in.Now.Add(n.untilSilent(heard)))
	}
	return true
}

// readMail compares the assignments and reports of the slices of steady jobs with what they
// were, and returns the jobs of which some differ. It notes which others have any.
func (f *focus) readMail(obs *plan.Observed) (changed []int) {
	compare := func(name string) {
		s := f.steady[name]
		if s == nil {
			f.others[name] = true
			return
		}
		hosts := obs.Hosts[name]
		same := func(a, b plan.Host) bool { return a.SameReport(&b) }
		if obs.Assignments[name].Object != s.assigned || !slices.EqualFunc(hosts, s.hosts, same) {
			changed = append(changed, s.job)
		}
		s.hear(hosts)
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

// observed is what was observed of all but the slices of steady jobs. Of those that are
// no more nothing is kept.
func (f *focus) observed(in *snapshot.Input, listed []listedSlice) *plan.Observed {
	part := *in.Obs
	part.Inventories = make(map[schema.ProviderName]schema.Inventory, len(in.Obs.Inventories))
	for provider := range in.Obs.Inventories {
		part.Inventories[provider] = schema.Inventory{}
	}
	there := make(map[string]bool, len(listed))
	for _, l := range listed {
		inv := part.Inventories[l.provider]
		inv.Slices = append(inv.Slices, *l.status)
		part.Inventories[l.provider] = inv
		there[l.status.Spec.Name] = true
	}
	part.Assignments, part.Hosts = make(map[string]plan.Assigned, len(f.others)), make(map[string][]plan.Host, len(f.others))
	part.Booting = map[string]bool{}
	for name := range f.others {
		a, assigned := in.Obs.Assignments[name]
		if assigned {
			part.Assignments[name] = a
		}
		hosts := in.Obs.Hosts[name]
		if hosts != nil {
			part.Hosts[name] = hosts
		}
		if in.Obs.Booting[name] {
			part.Booting[name] = true
		}
		if !assigned && hosts == nil && !in.Obs.Booting[name] && !there[name] && in.Doc.Slices[name] == nil {
			delete(f.others, name)
		}
	}
	return &part
}

// recordsOf is the part of a document that has to do with jobs: with what they depend on,
// with those that wait for them, and with all slices that are not a steady job's.
func (p *Planner) recordsOf(doc *state.Document, obs *plan.Observed, jobs []int) *state.Document {
	part := *doc
	part.Jobs, part.Slices = make(map[schema.Address]*state.Job, 2*len(jobs)), make(map[string]*state.Slice, len(p.focus.others))
	add := func(i int) {
		addr := p.desired.Jobs[i].Addr
		part.Jobs[addr] = doc.Jobs[addr]
	}
	addWithNeeded := func(i int) {
		add(i)
		for _, on := range slices.Concat(p.desired.Jobs[i].DependsOn, p.desired.Jobs[i].Uses) {
			if k, single := p.index[on]; single {
				add(k)
				continue
			}
			for _, k := range p.families[on] {
				add(k)
			}
		}
	}
	addOwner := func(addr schema.Address) {
		if i, declared := p.index[addr]; declared {
			add(i)
		}
	}
	for _, i := range jobs {
		addWithNeeded(i)
		for _, k := range p.waitingFor(p.desired.Jobs[i].Addr) {
			addWithNeeded(k)
		}
	}
	for name := range p.focus.others {
		if s := doc.Slices[name]; s != nil {
			part.Slices[name] = s
			addOwner(s.Spec.Owner)
		}
		if run := obs.Assignments[name].Run; run != nil {
			if j, known := p.byID[run.JobID]; known {
				add(j.index)
			}
		}
	}
	for _, inv := range obs.Inventories {
		for i := range inv.Slices {
			addOwner(inv.Slices[i].Spec.Owner)
		}
	}
	return &part
}
