package plan

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Planner is [Diff] for those who ask again and again about one stack: what it
// returns is what Diff would, at the cost of what goes on rather than of what is
// declared. The zero Planner is ready to use. It is a cache: a new one finds the
// same plans.
//
// Jobs that are quiet (quiet.go) are passed over as long as the document is the
// one that the last plan led to; whoever puts another one in its place, or asks
// for something else, has everything looked at again. So does a stack in which
// jobs are tied to each other by more than dependencies, such as a reservation.
//
// A plan and its document are good until the call after the next, which builds
// on them. Whoever keeps a document longer clones it.
type Planner struct {
	twin     twin
	last     *state.Document // that the last plan led to; nil: the next call looks at everything
	declared schema.Desired  // of the last call
	desired  schema.Desired  // the same with what was launched
	wanted   *schema.Desired // the same, also where that is not kept
	plan     *Plan           // the last one

	parents map[string]bool // ids of jobs that launched others
	forget  time.Time       // when something launched is forgotten, zero: nothing is

	jobs       []standing   // of desired.Jobs
	steady     []steadiness // of those that run so
	busy       []int        // those of them that are to be looked at, in order
	index      map[schema.Address]int
	byID       map[string]recordedJob
	dependents map[schema.Address][]int // by what they name
	families   map[schema.Address][]*schema.Job
	demand     demand
	pending    ledger
	loud       []Pending // of the last plan, without those of quiet jobs
}

// recordedJob is what assignments are compared with, of one of desired.Jobs.
type recordedJob struct {
	index   int
	attempt int
}

// Diff is the function of the same name.
func (p *Planner) Diff(desired *schema.Desired, doc *state.Document, obs *Observed, now time.Time) *Plan {
	if doc == p.last && sameDeclarations(desired, &p.declared) && (p.forget.IsZero() || now.Before(p.forget)) {
		d := newDiffer(&p.desired, doc, obs, now)
		if p.part(d) {
			p.plan = d.plan
			return d.plan
		}
		p.twin.before = nil // it may have been written to
	}
	p.wanted = Wanted(desired, doc, now)
	d := newDiffer(p.wanted, doc, obs, now)
	d.whole()
	p.declared = *desired
	p.learn(d)
	return d.plan
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
func (p *Planner) part(d *differ) bool {
	d.twin, d.families, d.recorded = &p.twin, p.families, len(d.doc.Jobs)
	if len(d.guests)+len(d.unknownGuests)+len(d.obs.Damaged) > 0 {
		return false
	}
	busy := p.disturbed(d)
	d.plan.Changes = make([]Change, 0, len(busy))
	d.findDrift()
	for _, i := range busy {
		if want := &d.desired.Jobs[i]; want.Lifecycle.PreventDestroy {
			if _, refused := d.refuses(want); refused {
				return false
			}
		}
		d.advance(&d.desired.Jobs[i])
	}
	if slices.ContainsFunc(d.editedJobs, func(addr schema.Address) bool { return p.leavesChildren(d.doc.Jobs[addr], d.next.Jobs[addr]) }) {
		return false
	}
	d.findWarm()
	d.stage() // before the rest is asked whom it waits for
	woken := p.woken(d)
	for _, i := range woken {
		d.idle = append(d.idle, &d.desired.Jobs[i])
	}
	if len(woken) > 0 {
		slices.SortFunc(d.idle, func(a, b *schema.Job) int { return a.Addr.Compare(b.Addr) })
	}
	inOrder(d.idle)
	d.place(d.idle)
	d.start(d.idle)
	d.rest()
	d.orphans()
	d.concludeWaits()
	if !p.merge(d, busy, woken) {
		return false
	}
	p.families = d.families
	p.settle(d, busy, woken)
	d.capacity(p.demand.clone())
	d.stamp()
	d.plan.Next = d.next
	p.last = d.next
	p.twin.turn(d.doc, d.next, d.editedJobs, d.editedSlices)
	return true
}

// merge completes the changes and waits of what was looked at with those of what
// was not. It reports false if something waits on behalf of a quiet job.
func (p *Planner) merge(d *differ, busy, woken []int) bool {
	first := len(p.plan.Changes) - len(d.desired.Jobs)
	seen := d.plan.Changes
	d.plan.Changes = p.plan.Changes
	for n, i := range busy {
		if sameChange(&d.plan.Changes[first+i], &seen[n]) {
			continue
		}
		if &d.plan.Changes[0] == &p.plan.Changes[0] {
			d.plan.Changes = slices.Clone(d.plan.Changes)
		}
		d.plan.Changes[first+i] = seen[n]
	}
	for i := range d.plan.Pending {
		addr := d.plan.Pending[i].Addr
		if k, job := p.index[addr]; job && p.jobs[k] == waits {
			if _, found := slices.BinarySearch(woken, k); !found {
				return false
			}
		}
	}
	was := p.loud
	if len(woken) > 0 {
		was = slices.Clone(was)
		for _, i := range woken {
			was = append(was, p.pendingOf(d.desired.Jobs[i].Addr))
		}
		slices.SortFunc(was, func(a, b Pending) int { return a.Addr.Compare(b.Addr) })
	}
	p.loud = d.plan.Pending
	d.plan.Pending = p.pending.turn(opsBetween(was, p.loud))
	return true
}

// pendingOf is what was last said of a job that waits.
func (p *Planner) pendingOf(addr schema.Address) Pending {
	i, _ := place(p.plan.Pending, addr)
	return p.plan.Pending[i]
}

// sameChange reports whether nothing is to be said of a job but what was said.
func sameChange(a, b *Change) bool {
	return a.Verb == b.Verb && a.Reason == b.Reason && len(a.Attrs)+len(b.Attrs) == 0
}
