package incremental

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/schedule"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Planner is [Diff] for callers that plan one stack again and again: what it
// returns is what Diff would, at the cost of what goes on rather than of what is
// declared. The zero Planner is ready to use. It is a cache: a new one finds the
// same plans.
//
// Jobs that are quiet (quiet.go) are passed over as long as the document is the
// one that the last plan led to; a caller that puts another one in its place, or asks
// for something else, has everything looked at again. So does a stack in which
// jobs are tied to each other by more than dependencies, such as a reservation.
//
// A plan and its document stay as they are: the next call changes copies.
type Planner struct {
	last     *state.Document // that the last plan led to; nil: the next call looks at everything
	declared schema.Desired  // of the last call
	desired  schema.Desired  // the same with what was launched
	wanted   *schema.Desired // the same, also where that is not kept
	plan     *plan.Plan      // the last one

	parents map[string]bool // ids of jobs that launched others
	forget  time.Time       // when something launched is forgotten, zero: nothing is

	conditions   []condition   // of desired.Jobs
	seen         []observation // of those that run so
	dirty        []int         // those of them that are to be looked at, in order
	index        map[schema.Address]int
	byID         map[string]recordedJob
	dependents   map[schema.Address][]int // by what they name
	families     map[schema.Address][]*schema.Job
	demand       capacity.Demand
	pending      pendingList
	pendingDirty []plan.Pending // of the last plan, without those of quiet jobs
}

// recordedJob is what assignments are compared with, of one of desired.Jobs.
type recordedJob struct {
	index   int
	attempt int
}

// Diff is the function of the same name.
func (p *Planner) Diff(desired *schema.Desired, doc *state.Document, obs *plan.Observed, now time.Time) *plan.Plan {
	if doc == p.last && sameDeclarations(desired, &p.declared) && (p.forget.IsZero() || now.Before(p.forget)) {
		d := reconcile.NewReconciler(&p.desired, doc, obs, now)
		if p.part(d) {
			p.plan = d.Plan
			return d.Plan
		}
	}
	p.wanted = launch.Wanted(desired, doc, now)
	d := reconcile.NewReconciler(p.wanted, doc, obs, now)
	d.Run()
	p.declared = *desired
	p.learn(d)
	return d.Plan
}

// sameDeclarations reports whether two configurations are the same values, not
// only equal ones.
func sameDeclarations(a, b *schema.Desired) bool {
	return sameSlice(a.Jobs, b.Jobs) && sameSlice(a.Groups, b.Groups) &&
		sameSlice(a.Namespaces, b.Namespaces) && sameSlice(a.Reservations, b.Reservations) && sameSlice(a.Providers, b.Providers)
}

func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Wanted is what the last call planned for: what was declared, as it was given,
// and what was launched. It is not to be changed.
func (p *Planner) Wanted() *schema.Desired { return p.wanted }

// part makes the plan from the last one and what is not quiet. It reports false
// where something turns up that only a look at everything settles; what it has
// done until then is void.
func (p *Planner) part(d *reconcile.Reconciler) bool {
	d.Families, d.Recorded = p.families, len(d.Doc.Jobs)
	if len(d.Packed)+len(d.UnrecordedPacked)+len(d.Obs.Damaged) > 0 {
		return false
	}
	busy := p.dirtySet(d)
	d.Plan.Changes = make([]plan.Change, 0, len(busy))
	d.FindDrift()
	for _, i := range busy {
		if want := &d.Desired.Jobs[i]; want.Lifecycle.PreventDestroy {
			if _, refused := d.IsBlocked(want); refused {
				return false
			}
		}
		d.Advance(&d.Desired.Jobs[i])
	}
	if slices.ContainsFunc(d.EditedJobs, func(addr schema.Address) bool { return p.leavesChildren(d.Doc.Jobs[addr], d.Next.Jobs[addr]) }) {
		return false
	}
	d.FindWarm()
	d.Stage() // before the rest is asked whom it waits for
	unblocked := p.unblocked(d)
	for _, i := range unblocked {
		d.Idle = append(d.Idle, &d.Desired.Jobs[i])
	}
	if len(unblocked) > 0 {
		slices.SortFunc(d.Idle, func(a, b *schema.Job) int { return a.Addr.Compare(b.Addr) })
	}
	schedule.InOrder(d.Idle)
	d.Place(d.Idle)
	d.Start(d.Idle)
	d.SettleIdle()
	d.Orphans()
	d.ConcludeWaits()
	if !p.merge(d, busy, unblocked) {
		return false
	}
	p.families = d.Families
	p.settle(d, busy, unblocked)
	d.Capacity(p.demand.Clone())
	d.Stamp()
	d.Plan.Next = d.Next
	p.last = d.Next
	return true
}

// merge completes the changes and waits of what was looked at with those of what
// was not. It reports false if something waits on behalf of a quiet job.
func (p *Planner) merge(d *reconcile.Reconciler, busy, unblocked []int) bool {
	first := len(p.plan.Changes) - len(d.Desired.Jobs)
	seen := d.Plan.Changes
	d.Plan.Changes = p.plan.Changes
	for n, i := range busy {
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
	was := p.pendingDirty
	if len(unblocked) > 0 {
		was = slices.Clone(was)
		for _, i := range unblocked {
			was = append(was, p.pendingOf(d.Desired.Jobs[i].Addr))
		}
		slices.SortFunc(was, func(a, b plan.Pending) int { return a.Addr.Compare(b.Addr) })
	}
	p.pendingDirty = d.Plan.Pending
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
