package incremental

import (
	"cmp"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/schedule"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// takedown plans the removal of all jobs of a stack, step after step. A job that others go
// before is held: as long as these are there, and nothing that is observed of its slices
// differs, there is nothing to decide about it.
type takedown struct {
	jobs    []leavingJob // that were there when it began, in address order
	index   map[schema.Address]int
	left    int          // of the jobs
	blocked int          // of these: with blockers that are left
	front   map[int]bool // the others

	focus   focus
	changes []plan.Change // that the next plan shows
	pending pendingList
	waiting []schema.Address // addresses about which the last plan decided and that wait
}

// leavingJob is a job of a takedown.
type leavingJob struct {
	addr     schema.Address
	blockers []schema.Address // jobs that go before it, with those that have gone
	before   []int            // jobs that it goes before
	left     int              // of the blockers
	rank     int              // in the order in which jobs are removed
	held     bool
	gone     bool
	seen     observation
}

// newTakedown goes on after a plan that decided about everything, nil where more than jobs
// is removed, or jobs share more than dependencies.
func newTakedown(d *reconcile.Reconciler) *takedown {
	if len(d.Desired.Jobs)+len(d.Next.Resources)+len(d.Plan.Blocked)+len(d.Next.Unmanaged) > 0 || d.Dissolving || !sharesNothing(d) {
		return nil
	}
	t := &takedown{index: map[schema.Address]int{}, front: map[int]bool{}, focus: newFocus()}
	for i := range d.Plan.Changes {
		c := &d.Plan.Changes[i]
		j := d.Next.Jobs[c.Addr]
		if c.Verb != plan.VerbDelete || c.Addr.Kind != schema.KindJob && c.Addr.Kind != schema.KindActorService {
			return nil
		}
		if j == nil {
			continue
		}
		if r := &j.Spec.Resources; j.Launch != nil || c.Addr.Group != "" || r.Provider == schema.ProviderGCP || r.Reservation != "" || r.Packed {
			return nil
		}
		t.index[c.Addr] = len(t.jobs)
		t.jobs, t.changes = append(t.jobs, leavingJob{addr: c.Addr}), append(t.changes, *c)
	}
	if t.left = len(t.jobs); t.left != len(d.Next.Jobs) {
		return nil
	}
	t.findBlockers(d.Next)
	for i := range t.jobs {
		t.judge(d, i)
	}
	t.focus.noteOthers(d)
	t.pending.take(d.Plan.Pending)
	for i := range d.Plan.Pending {
		t.waiting = append(t.waiting, d.Plan.Pending[i].Addr)
	}
	return t
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

// findBlockers finds who goes before whom.
func (t *takedown) findBlockers(doc *state.Document) {
	all := make([]schema.Address, 0, len(t.jobs))
	for i := range t.jobs {
		all = append(all, t.jobs[i].addr)
	}
	blockers := lifecycle.Blockers(doc.Jobs, all)
	for rank, addr := range lifecycle.DependentsFirst(all, blockers) {
		t.jobs[t.index[addr]].rank = rank
	}
	for i := range t.jobs {
		job := &t.jobs[i]
		job.blockers = blockers[job.addr]
		job.left = len(job.blockers)
		for _, by := range job.blockers {
			k := t.index[by]
			t.jobs[k].before = append(t.jobs[k].before, i)
		}
		if job.left > 0 {
			t.blocked++
		} else {
			t.front[i] = true
		}
	}
}

// judge settles whether a job is held.
func (t *takedown) judge(d *reconcile.Reconciler, i int) {
	t.release(i)
	job := &t.jobs[i]
	j := d.Next.Jobs[job.addr]
	if job.left == 0 || j != d.Doc.Jobs[job.addr] || len(j.Staged) > 0 {
		return
	}
	seen := make(observation, 0, len(j.Slices))
	for _, name := range j.Slices {
		st, listed := d.Listed[name]
		_, acting := d.Acting[name]
		if !listed || acting || d.Next.Slices[name] == nil || d.Next.Slices[name] != d.Doc.Slices[name] {
			return
		}
		s := observedSlice{name: name, status: st, assigned: d.Obs.Assignments[name].Object}
		s.hear(d.Obs.Hosts[name])
		if !isUndisputed(d, j, &s) {
			return
		}
		seen = append(seen, s)
	}
	if t.focus.addSteady(d, j, i, seen) {
		job.held, job.seen = true, seen
	}
}

// release has a job be decided about in the next plan.
func (t *takedown) release(i int) {
	job := &t.jobs[i]
	t.focus.dropSteady(job.seen)
	job.held, job.seen = false, nil
}

// plan makes the next plan, nil where that has to be made on all.
func (t *takedown) plan(in snapshot.Input) *plan.Plan {
	if len(in.Obs.Damaged) > 0 || t.blocked == t.left || !t.focus.on {
		return nil
	}
	near, narrow := t.near(&in)
	if !narrow {
		return nil
	}
	looked := snapshot.Take(near.in).Draft()
	if isMissing(looked) {
		return nil
	}
	looked.WakeAt(near.wake)
	removed, blockers := make([]schema.Address, 0, len(near.dirty)), map[schema.Address][]schema.Address{}
	for _, i := range near.dirty {
		job := &t.jobs[i]
		removed = append(removed, job.addr)
		blockers[job.addr] = job.blockers
	}
	order := slices.Clone(removed)
	slices.SortFunc(order, func(a, b schema.Address) int { return cmp.Compare(t.jobs[t.index[a]].rank, t.jobs[t.index[b]].rank) })
	concluded := lifecycle.ConcludeRemovals(looked.Snapshot(), removed, order, blockers)
	d := reconcile.New(schedule.Schedule(schedule.Input{Conclusion: concluded}))
	d.Orphans()
	d.Monitor()
	d.CountListed(near.listed)
	d.Capacity(near.listed, capacity.Demand{})
	d.ConcludeWaits()
	d.Stamp()
	next, ok := near.widened(d.Next)
	if !ok || !t.settle(d, near.dirty) {
		return nil
	}
	d.Plan.Next = next
	return d.Plan
}

// near is the part of an input that the next plan is made on.
func (t *takedown) near(in *snapshot.Input) (*near, bool) {
	if !isSeenWhole(in) {
		return nil, false
	}
	for i := range t.front {
		for _, k := range t.jobs[i].before {
			t.release(k)
		}
	}
	t.focus.look++
	n := &near{in: *in, whole: in.Doc}
	listed, changed, once := t.focus.list(in)
	if !once {
		return nil, false
	}
	mark := func(i int) {
		listed = append(listed, t.focus.listedOf(t.jobs[i].seen)...)
		t.release(i)
	}
	changed = append(changed, t.focus.readMail(in.Obs)...)
	for _, s := range append(changed, t.focus.silent(n)...) {
		mark(s.job)
	}
	for i := range t.jobs {
		job := &t.jobs[i]
		for k := range job.seen {
			n.wakeUnheard(job.seen[k].first)
		}
		if !job.held && !job.gone {
			n.dirty = append(n.dirty, i)
		}
	}
	n.listed = t.focus.sums.listed.Clone()
	n.in.Obs = t.focus.observed(in, listed, nil)
	n.in.Doc = t.recordsOf(in.Doc, n.in.Obs, n.dirty)
	return n, true
}

// recordsOf is the part of a document that has to do with jobs, with those that go before
// them, and with all slices that are no held job's.
func (t *takedown) recordsOf(doc *state.Document, obs *plan.Observed, jobs []int) *state.Document {
	part := *doc
	part.Jobs, part.Slices = map[schema.Address]*state.Job{}, map[string]*state.Slice{}
	add := func(addr schema.Address) {
		if j := doc.Jobs[addr]; j != nil {
			part.Jobs[addr] = j
		}
	}
	for _, i := range jobs {
		add(t.jobs[i].addr)
		for _, by := range t.jobs[i].blockers {
			add(by)
		}
	}
	for name := range t.focus.others {
		if s := doc.Slices[name]; s != nil {
			part.Slices[name] = s
			add(s.Spec.Owner)
		}
	}
	for _, inv := range obs.Inventories {
		for i := range inv.Slices {
			add(inv.Slices[i].Spec.Owner)
		}
	}
	return &part
}

// settle takes in what a plan decided about jobs. It reports false if one has gone that goes
// before others about which the plan did not decide.
func (t *takedown) settle(d *reconcile.Reconciler, jobs []int) bool {
	var gone []int
	for _, i := range jobs {
		if d.Next.Jobs[t.jobs[i].addr] != nil {
			continue
		}
		gone = append(gone, i)
		for _, k := range t.jobs[i].before {
			if _, decided := slices.BinarySearch(jobs, k); !decided {
				return false
			}
		}
	}
	t.conclude(d, jobs)
	for _, i := range gone {
		t.remove(i)
	}
	if len(gone) > 0 { // the plan was still about them
		t.changes = t.changesWithout(gone)
	}
	for _, i := range jobs {
		if !t.jobs[i].gone {
			t.judge(d, i)
		}
	}
	t.focus.noteOthers(d)
	return true
}

// changesWithout are the changes of the jobs that have not gone, in address order as jobs
// are. Earlier plans keep theirs.
func (t *takedown) changesWithout(gone []int) []plan.Change {
	slices.Sort(gone)
	left, rest := make([]plan.Change, 0, max(0, len(t.changes)-len(gone))), t.changes
	for _, i := range gone {
		n, found := slices.BinarySearchFunc(rest, t.jobs[i].addr, func(c plan.Change, a schema.Address) int { return c.Addr.Compare(a) })
		if found {
			left, rest = append(left, rest[:n]...), rest[n+1:]
		}
	}
	return append(left, rest...)
}

// conclude completes the changes and waits of a plan with those of held jobs.
func (t *takedown) conclude(d *reconcile.Reconciler, jobs []int) {
	d.Plan.Changes = t.changes
	decided := slices.Clone(t.waiting)
	for _, i := range jobs {
		decided = append(decided, t.jobs[i].addr)
	}
	slices.SortFunc(decided, schema.Address.Compare)
	var was []plan.Pending
	for _, addr := range slices.Compact(decided) {
		if n, waits := place(t.pending.last, addr); waits && !t.isHeld(addr) {
			was = append(was, t.pending.last[n])
		}
	}
	t.waiting = t.waiting[:0]
	for i := range d.Plan.Pending {
		t.waiting = append(t.waiting, d.Plan.Pending[i].Addr)
	}
	d.Plan.Pending = t.pending.turn(opsBetween(was, d.Plan.Pending))
}

func (t *takedown) isHeld(addr schema.Address) bool {
	i, known := t.index[addr]
	return known && t.jobs[i].held
}

// remove takes in that a job has gone.
func (t *takedown) remove(i int) {
	job := &t.jobs[i]
	t.release(i)
	job.gone, t.left = true, t.left-1
	delete(t.front, i)
	if job.left > 0 {
		t.blocked--
	}
	for _, k := range job.before {
		after := &t.jobs[k]
		if after.left--; after.left == 0 && !after.gone {
			t.blocked--
			t.front[k] = true
		}
	}
}
