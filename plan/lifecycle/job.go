package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// The life of a job instance, one Diff at a time:
//
//	pending   its dependencies, its turn, capacity, its hosts are waited for
//	          (place.go), then an attempt is assigned to all hosts at once
//	running   reports are gathered (attempt.go) until the attempt ends: all
//	          tasks succeeded, or one did not and the others were stopped
//	ended     a retry is due (retry.go), or slices are let go
//
// A changed spec ends the attempt first and is taken over when that is
// confirmed; so is the wish to stop, replace or delete.

// Advance takes one desired job as far as it goes without new capacity.
func (d *Jobs) Advance(want *schema.Job) {
	_, recorded := d.Doc.Jobs[want.Addr]
	j := d.taken(want)
	if !recorded && j != nil && want.Schedule != nil {
		j = runs{d}.follow(want)
	}
	if !recorded && (j == nil || !j.Running()) {
		d.Plan.Changes = append(d.Plan.Changes, plan.Change{
			Addr: want.Addr, Verb: plan.VerbCreate, Attrs: d.creations.Of(want),
		})
		if j == nil || !j.Status.Ended() {
			d.idle = append(d.idle, want)
		}
		return
	}
	change := d.changeOf(want, j)
	d.Plan.Changes = append(d.Plan.Changes, change)
	if change.Verb == plan.VerbReplace || change.Verb == plan.VerbRestart {
		d.Verbs[want.Addr] = change.Verb
	}
	j = d.ObserveLifecycle(want, j)
	if j.Running() {
		j = d.observe(j)
	}
	d.carryOut(want, j, &change)
	if j = d.JobAt(want.Addr); !j.Running() && !j.Status.Ended() {
		d.idle = append(d.idle, want)
	}
}

// taken is the record of a desired job, made where there is none, with whatever
// was found running of it. It is nil if the job cannot be recorded.
func (d *Jobs) taken(want *schema.Job) *state.Job {
	if j := d.JobAt(want.Addr); j != nil {
		return d.adopt(j)
	}
	return d.admit(want)
}

// admit records a job that was not there before, and returns it: if it was found
// running, it is like any other. It is nil if the job cannot be recorded.
func (d *Jobs) admit(want *schema.Job) *state.Job {
	digest, err := d.digests.Of(want)
	if err != nil {
		d.Wait(want.Addr, plan.Because(plan.WaitConstraint, err.Error()))
		return nil
	}
	j := &state.Job{
		ID:     plan.JobID(d.Doc.Lineage, want.Addr, d.Doc.Revision),
		Spec:   want,
		Digest: digest,
		Status: schema.JobPending, AdmittedAt: d.Now,
	}
	if want.Schedule != nil {
		j.Status, j.Scheduled = schema.JobScheduled, &state.ScheduledRuns{}
	}
	snapshot.PutJob(d.Draft, want.Addr, j)
	return d.adopt(j)
}

// changeOf is what a job's new spec means for it where it is: slices in zones that
// it is not to be in any more are replaced.
func (d *Jobs) changeOf(want *schema.Job, j *state.Job) plan.Change {
	change := changeFrom(want, j, snapshot.InUse(d.Next, j))
	isPlace := func(a *plan.AttrChange) bool {
		return a.Verb != plan.VerbNone && (a.Path == "resources.zones" || a.Path == "resources.regions")
	}
	if why := d.Outside(want, j.Slices); !why.None() && change.Verb != plan.VerbReplace && slices.ContainsFunc(change.Attrs, isPlace) {
		change.Verb, change.Reason, change.ActionReason = plan.VerbReplace, why.Text, plan.ReplaceBecauseUpdate
	}
	if change.Verb == plan.VerbUpdate || change.Verb == plan.VerbRestart {
		if why := d.outgrows(want, j); !why.None() {
			change.Verb, change.Reason, change.ActionReason = plan.VerbReplace, why.Text, plan.ReplaceBecauseUpdate
		}
	}
	change.Explain(j.Causes)
	return change
}

// ChangeOf compares a job's spec with what was last carried out.
func ChangeOf(want *schema.Job, cur *state.Job) plan.Change {
	return changeFrom(want, cur, snapshot.InUse(&state.Document{}, cur))
}

// changeFrom is ChangeOf a job that has one of its alternatives in use, "" for none.
func changeFrom(want *schema.Job, cur *state.Job, inUse schema.Accelerator) plan.Change {
	change := plan.Change{Addr: want.Addr, Verb: plan.VerbNone}
	if !planchange.SameSpec(want, cur) {
		change.Attrs = planchange.ChangedAttrs(planchange.JobAttrs(cur.Spec), planchange.JobAttrs(want))
		planchange.KeepAlternative(change.Attrs, cur.Spec, want, inUse)
		change.Verb = planchange.Strongest(change.Attrs)
		if change.Verb == plan.VerbRestart && (cur.Attempt == 0 || cur.Status == schema.JobScheduled && want.Schedule != nil) {
			change.Verb = plan.VerbUpdate // it has not started yet, or its next run has not
		}
	}
	if change.Verb == plan.VerbReplace {
		change.ActionReason = plan.ReplaceBecauseUpdate
	}
	switch {
	case cur.Replace:
		change.Verb, change.Reason, change.ActionReason = plan.VerbReplace, "asked for by --replace", plan.ReplaceByRequest
	case planchange.Triggered(want, cur):
		if change.Verb != plan.VerbReplace {
			change.Verb, change.Reason, change.ActionReason = plan.VerbReplace, planchange.ReplaceTriggeredBy, plan.ReplaceByTriggers
		}
	case change.Verb != plan.VerbNone:
	case cur.Status == schema.JobFailed:
		change.Reason = fmt.Sprintf("failed: %s; it stays so until it changes or --replace=%s", cur.Reason, quoteArg(want.Addr))
	case cur.Status == schema.JobStopped:
		change.Reason = "stopped; it stays so until it changes or --replace=" + quoteArg(want.Addr)
	}
	if change.Verb == plan.VerbReplace && change.Attrs == nil {
		change.Attrs = planchange.ChangedAttrs(planchange.JobAttrs(cur.Spec), planchange.JobAttrs(want))
	}
	return change
}

// quoteArg is an address as an argument for a shell.
func quoteArg(a schema.Address) string {
	if a.Key.IsZero() {
		return a.String()
	}
	return "'" + a.String() + "'"
}

// carryOut moves an existing job towards its spec.
func (d *Jobs) carryOut(want *schema.Job, j *state.Job, change *plan.Change) {
	addr, verb := want.Addr, change.Verb
	switch verb {
	case plan.VerbReplace, plan.VerbRestart:
		if j.Running() && want.HasUnknown() {
			// What runs goes on until it is known what takes its place.
			d.watchAttempt(j)
			d.Wait(addr, plan.Depends("some of its new values are not known yet"))
			return
		}
		if verb == plan.VerbReplace && want.Lifecycle.CreateBeforeDestroy {
			if d.Stages(want) {
				d.Staging = append(d.Staging, Staging{Want: want, Change: len(d.Plan.Changes) - 1})
				d.watchAttempt(j)
				return
			}
			if len(j.Staged) > 0 && capacity.SuitsStaged(d.Next, want) { // it has been ended, or ended by itself
				d.HandOver(want)
				return
			}
		}
		d.Unstage(addr)
		if verb == plan.VerbReplace && d.Released(addr, planchange.Replaced(d.Next.Jobs[addr])) || verb == plan.VerbRestart && d.restarted(addr, change.Attrs) {
			d.Renew(want)
		}
		return
	case plan.VerbUpdate:
		d.takeOver(want)
	case plan.VerbNone, plan.VerbCreate, plan.VerbDelete:
	}
	d.Unstage(addr)
	j = runs{d}.follow(want)
	switch {
	case d.isOverdueStart(want, j):
		d.unschedulable(want)
	case j.Stop && (!j.Status.Ended() || j.Status == schema.JobScheduled):
		if d.Released(addr, state.Termination{Cause: state.CauseStopped, Text: stoppedText(j)}) {
			e := d.Edit(addr)
			e.Status, e.Reason, e.Ready, e.Stop, e.StopBy = schema.JobStopped, stoppedText(j), false, false, ""
			endStoppedRun(e, d.Now)
		}
	case j.Status.Ended():
		if d.Released(addr, planchange.Decided(state.CauseEnded)) {
			d.beginQueued(d.Next.Jobs[addr])
		}
	case stopForMoney(d, addr):
	case isReplacedByRun(j):
		runs{d}.replace(addr)
	case !j.YieldsTo.IsZero():
		d.Yield(addr)
	case j.Running():
		d.watchAttempt(j)
	}
}

// restarted ends a job's attempt for a changed spec and reports whether none runs
// any more.
func (d *Jobs) restarted(addr schema.Address, attrs []*plan.AttrChange) bool {
	if !d.Next.Jobs[addr].Running() {
		return true
	}
	if last := d.Next.Jobs[addr].Last(); last.StopGeneration == 0 {
		causes := d.Next.Jobs[addr].Causes
		last = d.Edit(addr).Last()
		last.Changed = restartAttrs(attrs)
		last.Causes = plan.CausesOf(last.Changed, causes)
	}
	last := d.Next.Jobs[addr].Last()
	return d.stopAndReportStopped(addr, planchange.ChangedText(last.Changed, last.Causes)) // it counts only if nothing ended it before
}

// restartAttrs are the paths of the attributes for which tasks are started again.
func restartAttrs(attrs []*plan.AttrChange) []string {
	var paths []string
	for i := range attrs {
		if attrs[i].Verb == plan.VerbRestart {
			paths = append(paths, attrs[i].Path)
		}
	}
	if paths == nil {
		paths = []string{"its configuration"}
	}
	return paths
}

// takeOver records the new spec without touching what runs.
func (d *Jobs) takeOver(want *schema.Job) *state.Job {
	e := d.Edit(want.Addr)
	d.recordRemovedActors(e, want)
	spec := *want // of its own, or it would keep every other job of this desired
	e.Spec, e.Causes = &spec, nil
	if digest, err := schema.DigestOf(want); err == nil {
		e.Digest = digest
	}
	d.Tally(want.Addr)
	return e
}

// Renew starts a job over under its new spec.
func (d *Jobs) Renew(want *schema.Job) *state.Job {
	e := d.takeOver(want)
	e.Status, e.Reason, e.Ready = schema.JobPending, "", false
	if want.Schedule != nil && !e.Scheduled.RunGoesOn() {
		e.Status = schema.JobScheduled
	}
	e.Failures, e.Preemptions, e.UnknownEnds, e.Streak = 0, 0, 0, 0
	e.RetryAt, e.AdmittedAt = time.Time{}, d.Now
	e.Replace, e.Stop = false, false
	return e
}

// Removals takes down jobs that are no longer declared, dependents first, and
// drops declarations that nothing stands in any more.
func (d *Jobs) Removals() {
	removed := d.undeclared()
	d.Leaving = make(map[schema.Address]bool, len(removed))
	for _, addr := range removed {
		d.Leaving[addr] = true
	}
	blockers := Blockers(d.Doc.Jobs, removed)
	if len(blockers) == len(removed) { // they all depend on one another
		blockers = nil
	}
	for _, addr := range removed {
		if d.Doc.Jobs[addr].Launch == nil { // else it is forgotten
			d.Plan.Changes = append(d.Plan.Changes, d.removal(addr))
		}
	}
	d.takeDown(removed, DependentsFirst(removed, blockers), blockers)
	occupied := map[schema.Address]bool{} // groups
	for _, addr := range removed {
		if d.Next.Jobs[addr] != nil {
			occupied[addr.GroupAddress()] = true
		}
	}
	var recorded map[schema.Address][]string
	for _, addr := range d.withdrawn {
		if recorded == nil {
			recorded = d.PoolSlices()
		}
		switch {
		case addr.Kind == schema.KindJobGroup && occupied[addr]:
			d.Wait(addr, plan.Underway("its jobs are being deleted"))
		case addr.Kind == schema.KindReservation && d.shrink(addr, recorded[addr], nil):
			d.Dissolving = true
		case d.isRemembered(addr):
		default:
			delete(d.Mutable().Resources, addr)
		}
	}
	d.forgetGroups()
}

// undeclared are the recorded jobs that are desired no more, in address order.
func (d *Jobs) undeclared() []schema.Address {
	if len(d.Doc.Jobs) == 0 {
		return nil
	}
	wanted, recorded := make(map[schema.Address]bool, len(d.Desired.Jobs)), 0
	for i := range d.Desired.Jobs {
		addr := d.Desired.Jobs[i].Addr
		if _, is := d.Doc.Jobs[addr]; is {
			recorded++
		}
		wanted[addr] = true
	}
	if recorded == len(d.Doc.Jobs) {
		return nil
	}
	var removed []schema.Address
	for addr := range d.Doc.Jobs {
		if !wanted[addr] {
			removed = append(removed, addr)
		}
	}
	slices.SortFunc(removed, schema.Address.Compare)
	return removed
}

// takeDown removes jobs in an order, but for those of whose blockers some are left.
func (d *Jobs) takeDown(removed, order []schema.Address, blockers map[schema.Address][]schema.Address) {
	for _, addr := range order {
		if _, blocked := d.standing(blockers[addr]); !blocked {
			d.removeJob(addr)
		}
	}
	for _, addr := range removed {
		if by, blocked := d.standing(blockers[addr]); blocked {
			d.Wait(addr, plan.Underway(by.String()+" is deleted before it"))
		}
	}
}

// Blockers are, for each of the recorded jobs that are removed, the others that depend on
// it and so go first.
func Blockers(recorded map[schema.Address]*state.Job, removed []schema.Address) map[schema.Address][]schema.Address {
	dependents := map[schema.Address][]schema.Address{} // by what they name
	for _, addr := range removed {
		spec := recorded[addr].Spec
		for _, on := range spec.DependsOn {
			dependents[on] = append(dependents[on], addr)
		}
		for _, on := range spec.Uses {
			dependents[on] = append(dependents[on], addr)
		}
	}
	blockers := map[schema.Address][]schema.Address{}
	for _, addr := range removed {
		named := []schema.Address{addr, addr.Base()}
		if group := addr.GroupAddress(); !group.IsZero() {
			named = append(named, group)
		}
		for _, on := range named {
			for _, by := range dependents[on] {
				if by.Base() != addr.Base() && (on.Kind != schema.KindJobGroup || by.GroupAddress() != addr.GroupAddress()) {
					blockers[addr] = append(blockers[addr], by)
				}
			}
		}
	}
	return blockers
}

// DependentsFirst is the order in which jobs can be removed, so that those that are
// gone at once block none in the same plan.
func DependentsFirst(removed []schema.Address, blockers map[schema.Address][]schema.Address) []schema.Address {
	order, seen := make([]schema.Address, 0, len(removed)), make(map[schema.Address]bool, len(removed))
	var visit func(addr schema.Address)
	visit = func(addr schema.Address) {
		if seen[addr] {
			return
		}
		seen[addr] = true
		for _, by := range blockers[addr] {
			visit(by)
		}
		order = append(order, addr)
	}
	for _, addr := range removed {
		visit(addr)
	}
	return order
}

// removal is what plans show of a job that is deleted.
func (d *Jobs) removal(addr schema.Address) plan.Change {
	spec := d.Doc.Jobs[addr].Spec
	attrs, known := d.Removed[spec]
	if !known {
		attrs = planchange.ChangedAttrs(planchange.JobAttrs(spec), nil)
		if d.Removed != nil {
			d.Removed[spec] = attrs
		}
	}
	return plan.Change{Addr: addr, Verb: plan.VerbDelete, Attrs: attrs}
}

// standing is the last of some jobs that is there yet.
func (d *Jobs) standing(jobs []schema.Address) (schema.Address, bool) {
	for _, addr := range slices.Backward(jobs) {
		if d.Next.Jobs[addr] != nil {
			return addr, true
		}
	}
	return schema.Address{}, false
}

func (d *Jobs) removeJob(addr schema.Address) {
	if j := d.adopt(d.Doc.Jobs[addr]); j.Running() {
		d.observe(j)
	}
	d.Unstage(addr)
	if d.Released(addr, planchange.Decided(state.CauseJobRemoved)) {
		if j := d.Next.Jobs[addr]; j.Launch == nil {
			d.recordRemovedActors(j, nil)
		}
		snapshot.DropJob(d.Draft, addr)
		d.Tally(addr)
	}
}
