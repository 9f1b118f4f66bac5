package incremental

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/schedule"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Planner is [Diff] for callers that plan one stack again and again: what it
// returns is what Diff would, at the cost of what goes on rather than of what is
// declared. The zero Planner is ready to use. It is a cache: a new one finds the
// same plans.
//
// Jobs that are clean (condition.go) are passed over as long as the document is the
// one that the last plan led to; a caller that puts another one in its place, or asks
// for something else, has everything looked at again. So has a stack with a reservation
// that was launched or that expires.
//
// A plan and its document stay as they are: the next call changes copies.
type Planner struct {
	// Edits are to have noted which jobs and slices each document differs in that follows from
	// another one. After a plan of all jobs that is not known.
	Edits []*state.Edits

	last     *state.Document // that the last plan led to; nil: the next call looks at everything
	declared schema.Desired  // of the last call
	desired  schema.Desired  // the same with what was launched
	wanted   *schema.Desired // the same, also where that is not kept
	plan     *plan.Plan      // the last one

	removed map[*schema.Job][]*plan.AttrChange // what plans show of jobs that are being deleted

	premises

	conditions []condition   // of desired.Jobs
	seen       []observation // of those that run so
	dirty      []int         // those of them that are to be looked at, in order
	byID       map[string]recordedJob
	schedules  schedules
	relations
	pools    map[string]sharedPool // the reservations
	focus    focus
	check    check
	takedown *takedown       // nil: something stays
	demand   capacity.Demand // of jobs
	waits
}

// waits are what jobs wait for.
type waits struct {
	pending      pendingList
	pendingDirty []plan.Pending // of the last plan, without those of blocked jobs
	turns        turns
}

// premises are what else the last plan holds for.
type premises struct {
	launches
	money []moneyLevel // how budgets of money stood
}

// relations are who has to do with whom, as it was declared.
type relations struct {
	index      map[schema.Address]int           // of desired.Jobs
	dependents map[schema.Address][]int         // by what they name
	families   map[schema.Address][]int         // the instances of a job and the jobs of a group
	members    map[schema.Address][]*schema.Job // the same, as far as it was asked for
	drawers    map[string][]int                 // the jobs of a reservation
}

// launches are what was launched.
type launches struct {
	parents map[string]bool // ids of jobs that launched others
	forget  time.Time       // when something launched is forgotten, zero: nothing is
}

// recordedJob is what assignments are compared with, of one of desired.Jobs.
type recordedJob struct {
	index   int
	attempt int
}

// Diff is the function of the same name.
func (p *Planner) Diff(desired *schema.Desired, doc *state.Document, obs *plan.Observed, now time.Time) *plan.Plan {
	p.check.asked, p.check.differing = nil, nil
	if doc == p.last && sameDeclarations(desired, &p.declared) && (p.forget.IsZero() || now.Before(p.forget)) && slices.Equal(p.money, moneyLevels(desired, doc, now)) {
		if made := p.next(doc, obs, now); made != nil {
			p.plan = made
			if p.forget.IsZero() || len(made.Next.RemovedActors) > launch.MaxRemembered {
				p.forget = launch.ForgetActorsAt(made.Next.RemovedActors)
			}
			return made
		}
	}
	p.wanted = launch.Wanted(desired, doc, now)
	if p.removed == nil {
		p.removed = map[*schema.Job][]*plan.AttrChange{}
	}
	d := reconcile.Whole(snapshot.Input{Desired: p.wanted, Doc: doc, Obs: obs, Now: now, Removed: p.removed})
	if len(d.Leaving) == 0 {
		p.removed = nil
	}

	p.declared, p.money = *desired, moneyLevels(desired, doc, now)
	p.learn(d)
	return d.Plan
}

// next makes the plan from the last one, nil where only a Diff of everything decides.
func (p *Planner) next(doc *state.Document, obs *plan.Observed, now time.Time) *plan.Plan {
	in := snapshot.Input{Desired: &p.desired, Doc: doc, Obs: obs, Now: now, FamilyOf: p.familyOf}
	if p.takedown == nil {
		return p.part(in)
	}
	made := p.takedown.plan(in)
	if made != nil {
		p.last = made.Next
	}
	return made
}

// sameDeclarations reports whether two configurations are the same values, not
// only equal ones.
func sameDeclarations(a, b *schema.Desired) bool {
	return state.SameSlice(a.Jobs, b.Jobs) && state.SameSlice(a.Groups, b.Groups) &&
		state.SameSlice(a.Namespaces, b.Namespaces) && state.SameSlice(a.Reservations, b.Reservations) && state.SameSlice(a.Providers, b.Providers) && state.SameSlice(a.Notifications, b.Notifications)
}

// Wanted is what the last call planned for: what was declared, as it was given,
// and what was launched. It is not to be changed.
func (p *Planner) Wanted() *schema.Desired { return p.wanted }

// part makes the plan from the last one and the jobs that are dirty. It is nil where
// only a Diff of everything decides; what was found until then is void.
func (p *Planner) part(in snapshot.Input) *plan.Plan {
	// After a look that missed something a plan of all is made once: the next ones are of parts again.
	if len(in.Obs.Damaged) > 0 || !p.focus.on && isSeenWhole(&in) {
		return nil
	}
	near, narrow := p.near(&in)
	switch {
	case narrow && near.missing:
		return nil
	case narrow:
		in = near.in
	}
	looked := snapshot.Take(in).Draft()
	if narrow {
		in.Rest.Spent = near.listed.Amounts(looked.Draft)
	}
	var dirty []int
	p.turns.passed = nil
	switch {
	case !narrow:
		dirty = p.dirtySet(looked)
	case isMissing(looked):
		return nil
	default:
		dirty = p.turns.due(looked, &p.desired, near.dirty)
		looked.WakeAt(near.wake)
	}
	jobs := make([]*schema.Job, 0, len(dirty))
	for _, i := range dirty {
		jobs = append(jobs, &p.desired.Jobs[i])
	}
	concluded, ok := lifecycle.ConcludeJobs(looked.Snapshot(), jobs)
	if !ok || p.reapsChildren(in.Doc, concluded.Snapshot) {
		return nil
	}
	replaced := schedule.Replace(concluded)
	unblocked := p.unblocked(in.Doc, replaced.Snapshot.Next(), replaced.Snapshot.Edited())
	decided := schedule.Schedule(schedule.Input{Conclusion: replaced, Queue: p.queue(replaced.Idle, unblocked)})

	d := reconcile.New(decided)
	if d.Incomplete {
		return nil
	}
	d.Orphans()
	d.Monitor()
	d.ConcludeWaits()
	if narrow && p.endsOther(d) || !p.merge(d, dirty, unblocked) {
		return nil
	}
	listed := capacity.Demand{}
	var beside besides
	if narrow {
		listed, beside = near.listed, near.beside
	}
	p.settle(d, dirty, unblocked, beside.jobs)
	p.check.compare(p, d, d.Plan.Changes[len(d.Plan.Changes)-len(d.Desired.Jobs):])
	p.focus.noteOthers(d)
	p.notePools(d)
	wanted := p.demand.Clone()
	if narrow {
		p.addPools(wanted, beside.pools)
	}
	d.CountListed(listed)
	d.AddPools(wanted)
	d.Capacity(listed, wanted)
	d.Stamp()
	d.Plan.Next = d.Next
	if narrow {
		if d.Plan.Next, narrow = near.widened(d.Next); !narrow {
			return nil
		}
		p.note(near.whole, d.Plan.Next, near.edited)
	}
	p.last, p.focus.partial = d.Plan.Next, narrow
	p.schedules.update(p.last, d.EditedJobs)
	d.WakeAt(p.schedules.wake(p.last, dirty))
	return d.Plan
}

// note has it noted in what a document differs from the one that it was made of.
func (p *Planner) note(was, is *state.Document, by edited) {
	for _, e := range p.Edits {
		e.Note(was, is, by.jobs, by.slices)
	}
}

// queue is the idle jobs and those that are unblocked, in address order.
func (p *Planner) queue(idle []*schema.Job, unblocked []int) []*schema.Job {
	if len(unblocked) == 0 {
		return idle
	}
	queue := slices.Clone(idle)
	for _, i := range unblocked {
		queue = append(queue, &p.desired.Jobs[i])
	}
	slices.SortFunc(queue, func(a, b *schema.Job) int { return a.Addr.Compare(b.Addr) })
	return queue
}

// reapsChildren reports whether a job has changed that may end what it launched.
func (p *Planner) reapsChildren(doc *state.Document, after snapshot.Snapshot) bool {
	return slices.ContainsFunc(after.Edited(), func(addr schema.Address) bool {
		return p.leavesChildren(doc.Jobs[addr], after.Next().Jobs[addr])
	})
}

// merge completes the changes and waits of what was looked at with those of what
// was not. It reports false if something waits on behalf of a blocked job, or of one that was
// left out.
func (p *Planner) merge(d *reconcile.Reconciler, dirty, unblocked []int) bool {
	first := len(p.plan.Changes) - len(d.Desired.Jobs)
	seen := d.Plan.Changes
	d.Plan.Changes = p.plan.Changes
	for n, i := range dirty {
		if sameChange(&d.Plan.Changes[first+i], &seen[n]) {
			continue
		}
		if &d.Plan.Changes[0] == &p.plan.Changes[0] {
			d.Plan.Changes = slices.Clone(d.Plan.Changes)
		}
		d.Plan.Changes[first+i] = seen[n]
	}
	for i := range d.Plan.Pending {
		addr := d.Plan.Pending[i].Addr
		if k, job := p.index[addr]; job && p.conditions[k] == blocked {
			if _, found := slices.BinarySearch(unblocked, k); !found {
				return false
			}
		}
	}
	passed, ok := p.turns.carryOver(d, p.index)
	if !ok {
		return false
	}
	was := p.pendingDirty
	if len(unblocked) > 0 {
		was = slices.Clone(was)
		for _, i := range unblocked {
			was = append(was, p.pendingOf(d.Desired.Jobs[i].Addr))
		}
		slices.SortFunc(was, func(a, b plan.Pending) int { return a.Addr.Compare(b.Addr) })
	}
	p.pendingDirty = d.Plan.Pending
	if len(passed) > 0 {
		p.pendingDirty = pendingOps{put: passed}.written(p.pendingDirty)
	}
	d.Plan.Pending = p.pending.turn(opsBetween(was, p.pendingDirty))
	return true
}

// pendingOf is what was last said of a job that waits.
func (p *Planner) pendingOf(addr schema.Address) plan.Pending {
	i, _ := place(p.plan.Pending, addr)
	return p.plan.Pending[i]
}

// sameChange reports whether nothing is to be said of a job but what was said.
func sameChange(a, b *plan.Change) bool {
	return a.Verb == b.Verb && a.Reason == b.Reason && len(a.Attrs)+len(b.Attrs) == 0
}
