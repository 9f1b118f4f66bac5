package incremental

import (
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A job is clean if the next Diff would decide the same about it and do nothing,
// whatever the time and whatever is observed, until
//
//   - the document has another entry for it: that is a Planner's own doing, or
//     else the document is another one,
//   - an assignment names a newer attempt of it than is recorded, or
//   - for one that waits: another job that its dependencies name changes in a
//     way that matters to its dependents.
//
// Jobs that hold no slices, and of which none are left, are clean: done ones, which have
// ended, and blocked ones, which wait for dependencies before they are given slices. So
// are steady ones, see steady.go. All others are dirty.

// condition is whether a job is clean, and why.
type condition uint8

const (
	dirty   condition = iota // the next plan decides about it again
	done                     // it has ended
	blocked                  // for what it depends on
	steady                   // it runs as it was last observed
)

// conditionOf is the condition of a job after a plan that decided about it; held reports
// that it waits for its dependencies.
func conditionOf(d *reconcile.Reconciler, want *schema.Job, change *plan.Change, held bool) condition {
	j := d.Next.Jobs[want.Addr]
	switch {
	case j != d.Doc.Jobs[want.Addr], change.Verb != plan.VerbNone,
		j.Replace, j.Stop, j.Running(), len(j.Slices) > 0, d.Clearing[want.Addr]:
		return dirty
	case j.Status.Ended():
		return done
	case drawsOnPool(want):
		return dirty
	case held && want.Addr.Group == "" && want.SchedulingTimeout == 0 && j.Status == schema.JobPending && j.RetryAt.IsZero():
		return blocked
	}
	return dirty
}

// learn remembers what follows from a plan that decided about everything.
func (p *Planner) learn(d *reconcile.Reconciler) {
	p.pending.take(d.Plan.Pending)
	p.plan, p.last, p.focus, p.takedown = d.Plan, nil, focus{}, nil
	p.turns = turns{most: p.turns.most}
	if !separable(d) {
		if p.takedown = newTakedown(d); p.takedown != nil {
			p.last, p.desired, p.index, p.members, p.families = d.Next, *d.Desired, nil, nil, nil
			p.forget = launch.ForgetActorsAt(d.Next.RemovedActors)
		}
		return
	}
	if !sameDeclarations(d.Desired, &p.desired) || p.index == nil {
		p.declare(d)
	}
	p.last, p.demand = d.Next, d.JobDemand()
	p.refocus(d)
	p.noteLaunches(d)
	held := make(map[*schema.Job]bool, len(d.Held))
	for _, want := range d.Held {
		held[want] = true
	}
	first := len(d.Plan.Changes) - len(p.conditions)
	p.dirty, p.byID = p.dirty[:0], make(map[string]recordedJob, len(p.conditions))
	for i := range p.conditions {
		want := &d.Desired.Jobs[i]
		j := d.Next.Jobs[want.Addr]
		p.byID[j.ID] = recordedJob{index: i, attempt: j.Attempt}
		if p.judge(d, i, &d.Plan.Changes[first+i], held[want]) == dirty {
			p.dirty = append(p.dirty, i)
		}
	}
	p.schedules.find(&p.desired, d.Next)
	p.focus.noteOthers(d)
	p.notePools(d)
	p.markUnblocked(d)
	p.pendingDirty = slices.DeleteFunc(slices.Clone(d.Plan.Pending), p.isBlocked)
}

// markUnblocked marks the blocked jobs dirty of which a dependency has changed: it may
// have done so after the plan decided about them, such as one that was ended to make
// room. They are returned.
func (p *Planner) markUnblocked(d *reconcile.Reconciler) []int {
	late := p.unblocked(d.Doc, d.Next, d.EditedJobs)
	for _, i := range late {
		p.conditions[i] = dirty
	}
	if len(late) > 0 {
		p.dirty = append(p.dirty, late...)
		slices.Sort(p.dirty)
	}
	return late
}

// judge settles how a job stands that was looked at.
func (p *Planner) judge(d *reconcile.Reconciler, i int, change *plan.Change, held bool) condition {
	want := &d.Desired.Jobs[i]
	p.focus.dropSteady(p.seen[i])
	p.seen[i] = nil
	p.conditions[i] = conditionOf(d, want, change, held)
	j := d.Next.Jobs[want.Addr]
	if p.conditions[i] == dirty && !want.Resources.Packed && j == d.Doc.Jobs[want.Addr] && change.Verb == plan.VerbNone && j.Running() && !j.Replace && !j.Stop && !d.Clearing[want.Addr] {
		if seen := observationOf(d, j); seen != nil && p.focus.addSteady(d, j, i, seen) {
			p.conditions[i], p.seen[i] = steady, seen
		}
	}
	return p.conditions[i]
}

// isBlocked reports whether it is of a blocked job.
func (p *Planner) isBlocked(w plan.Pending) bool {
	i, job := p.index[w.Addr]
	return job && p.conditions[i] == blocked
}

// separable reports whether the plan's changes are those of the declared jobs,
// all of them recorded by now, after some that are settled, and no job's lot
// depends on others but through dependencies and the room that is left.
func separable(d *reconcile.Reconciler) bool {
	first := len(d.Plan.Changes) - len(d.Desired.Jobs)
	if d.Dissolving || first < 0 || len(d.Plan.Blocked) > 0 || len(d.Next.Jobs) != len(d.Desired.Jobs) || len(d.Next.Unmanaged) > 0 || !poolsStay(d) {
		return false
	}
	for i := range first {
		c := &d.Plan.Changes[i]
		if _, kept := d.Next.Resources[c.Addr]; !kept || c.Verb != plan.VerbNone {
			return false
		}
	}
	for i := range d.Desired.Jobs {
		addr := d.Desired.Jobs[i].Addr
		if d.Plan.Changes[first+i].Addr != addr || d.Next.Jobs[addr] == nil {
			return false
		}
	}
	return true
}

// poolsStay reports whether no reservation ends by time or with the job that launched it:
// then other jobs get slices of their own.
func poolsStay(d *reconcile.Reconciler) bool {
	for i := range d.Desired.Reservations {
		r := &d.Desired.Reservations[i]
		recorded := d.Next.Resources[r.Addr]
		if r.TTL > 0 || recorded.Launch != nil {
			return false
		}
	}
	return true
}

// drawsOnPool reports whether a job has slices of a reservation, or parts of their hosts.
func drawsOnPool(want *schema.Job) bool {
	return want.Resources.Reservation != "" || want.Resources.Packed
}

// declare notes what depends on the declarations alone.
func (p *Planner) declare(d *reconcile.Reconciler) {
	p.desired = *d.Desired
	p.conditions = make([]condition, len(d.Desired.Jobs))
	p.seen = make([]observation, len(d.Desired.Jobs))
	p.index = make(map[schema.Address]int, len(d.Desired.Jobs))
	p.dependents, p.families, p.members = map[schema.Address][]int{}, map[schema.Address][]int{}, nil
	p.drawers, p.pools = map[string][]int{}, map[string]sharedPool{}
	for i := range d.Desired.Jobs {
		job := &d.Desired.Jobs[i]
		p.index[job.Addr] = i
		for _, of := range snapshot.FamiliesOf(job.Addr) {
			p.families[of] = append(p.families[of], i)
		}
		for _, on := range slices.Concat(job.DependsOn, job.Uses) {
			p.dependents[on] = append(p.dependents[on], i)
		}
		if of := job.Resources.Reservation; of != "" {
			p.drawers[of] = append(p.drawers[of], i)
		}
	}
	p.check.begin(d.Desired, p.drawers)
}

// familyOf is [snapshot.Draft.Family] of the jobs that are declared.
func (p *Planner) familyOf(of schema.Address) []*schema.Job {
	found, known := p.members[of]
	if known {
		return found
	}
	for _, i := range p.families[of] {
		found = append(found, &p.desired.Jobs[i])
	}
	if p.members == nil {
		p.members = map[schema.Address][]*schema.Job{}
	}
	p.members[of] = found
	return found
}

// dirtySet are the jobs to decide about again: those that are dirty, those of which an
// assignment names a newer attempt, and steady ones of which something else is observed.
func (p *Planner) dirtySet(d *snapshot.Evidence) []int {
	busy, newer := slices.Clone(p.dirty), false
	for _, a := range d.Obs.Assignments {
		if a.Run == nil {
			continue
		}
		j, known := p.byID[a.Run.JobID]
		if !known || a.Run.Attempt <= j.attempt {
			continue
		}
		newer = true
		if p.conditions[j.index] != dirty {
			p.markDirty(j.index)
			busy = append(busy, j.index)
		}
	}
	if !newer {
		d.NoneNewer()
	}
	for _, i := range p.schedules.due(d.Doc, d.Now) {
		if p.conditions[i] != dirty {
			p.markDirty(i)
			busy = append(busy, i)
		}
	}
	for i := range p.conditions {
		if p.conditions[i] == steady && !isUnchanged(d, p.seen[i]) {
			p.markDirty(i)
			busy = append(busy, i)
		}
	}
	if len(busy) > len(p.dirty) {
		slices.Sort(busy)
	}
	return busy
}

// markDirty makes a job one that the next plan decides again.
func (p *Planner) markDirty(i int) {
	if p.conditions[i] == blocked {
		w := p.pendingOf(p.desired.Jobs[i].Addr)
		n, _ := place(p.pendingDirty, w.Addr)
		p.pendingDirty = slices.Insert(p.pendingDirty, n, w)
	}
	p.conditions[i] = dirty
	p.focus.dropSteady(p.seen[i])
	p.seen[i] = nil
}

// waitingFor are the blocked jobs that name a job or its family.
func (p *Planner) waitingFor(addr schema.Address) []int {
	var found []int
	for _, on := range []schema.Address{addr, addr.Base(), addr.GroupAddress()} {
		for _, i := range p.dependents[on] {
			if p.conditions[i] == blocked {
				found = append(found, i)
			}
		}
	}
	return found
}

// unblocked are the blocked jobs of which a dependency has changed.
func (p *Planner) unblocked(was, is *state.Document, edited []schema.Address) []int {
	var found []int
	for _, addr := range edited {
		if sameToOthers(was.Jobs[addr], is.Jobs[addr]) {
			continue
		}
		found = append(found, p.waitingFor(addr)...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// sameToOthers reports whether two records of a job are the same to jobs that
// depend on it, see dependency.state.
func sameToOthers(a, b *state.Job) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Ready == b.Ready && (!a.Status.Ended() || a.Reason == b.Reason) &&
		(a.Spec == b.Spec || a.Spec.IsService() == b.Spec.IsService() && (a.Spec.HealthCheck == nil) == (b.Spec.HealthCheck == nil))
}

// settle judges the jobs that were looked at anew.
func (p *Planner) settle(d *reconcile.Reconciler, busy, unblocked []int, beside map[int]bool) {
	for _, addr := range d.EditedJobs {
		p.recount(d, addr)
	}
	held := make(map[*schema.Job]bool, len(d.Held))
	for _, want := range d.Held {
		held[want] = true
	}
	looked := slices.Concat(busy, unblocked, p.touched(d, beside))
	for _, addr := range d.EditedJobs {
		if i := p.index[addr]; p.conditions[i] == steady { // ended for the sake of another one
			looked = append(looked, i)
		}
	}
	slices.Sort(looked)
	first := len(d.Plan.Changes) - len(p.conditions)
	still := make([]int, 0, len(looked))
	for _, i := range slices.Compact(looked) {
		if p.judge(d, i, &d.Plan.Changes[first+i], held[&d.Desired.Jobs[i]]) == dirty {
			still = append(still, i)
		}
	}
	if p.dirty = still; len(p.turns.passed) > 0 {
		p.dirty = slices.Concat(still, p.turns.passed)
		slices.Sort(p.dirty)
	}
	p.turns.note(d, busy, p.dirty, p.pendingDirty)
	late := p.markUnblocked(d)
	p.pendingDirty = slices.DeleteFunc(p.pendingDirty, p.isBlocked)
	for _, i := range late {
		addr := d.Desired.Jobs[i].Addr
		if n, loud := place(p.pendingDirty, addr); !loud {
			of, _ := place(d.Plan.Pending, addr)
			p.pendingDirty = slices.Insert(p.pendingDirty, n, d.Plan.Pending[of])
		}
	}
}

// recount takes in that the record of a job was changed. It may be told twice.
func (p *Planner) recount(d *reconcile.Reconciler, addr schema.Address) {
	i := p.index[addr]
	want, was, is := &d.Desired.Jobs[i], d.Doc.Jobs[addr], d.Next.Jobs[addr]
	if was.ID != is.ID {
		delete(p.byID, was.ID)
	}
	p.byID[is.ID] = recordedJob{index: i, attempt: is.Attempt}
	before, asked := d.Asks(want, was, d.Doc)
	after, asks := d.Asks(want, is, d.Next)
	same := asked && asks && before == after
	if asked && !same {
		p.demand.Add(before, -1, -want.Resources.Slices)
	}
	if asks && !same {
		p.demand.Add(after, 1, want.Resources.Slices)
	}
}
