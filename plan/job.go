package plan

import (
	"fmt"
	"slices"
	"time"

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

// advance takes one desired job as far as it goes without new capacity.
func (d *differ) advance(want *schema.Job) {
	_, recorded := d.doc.Jobs[want.Addr]
	if recorded {
		d.recorded++
	}
	j := d.taken(want)
	if !recorded && (j == nil || !j.Running()) {
		d.plan.Changes = append(d.plan.Changes, Change{
			Addr: want.Addr, Verb: VerbCreate, Attrs: changedAttrs(nil, jobAttrs(want)),
		})
		d.idle = append(d.idle, want)
		return
	}
	change := d.changeOf(want, j)
	d.plan.Changes = append(d.plan.Changes, change)
	if change.Verb == VerbReplace || change.Verb == VerbRestart {
		d.verbs[want.Addr] = change.Verb
	}
	j = d.observeLifecycle(want, j)
	if j.Running() {
		j = d.observe(j)
	}
	d.carryOut(want, j, &change)
	if j = d.next.Jobs[want.Addr]; !j.Running() && !j.Status.Ended() {
		d.idle = append(d.idle, want)
	}
}

// taken is the record of a desired job, made where there is none, with whatever
// was found running of it. It is nil if the job cannot be recorded.
func (d *differ) taken(want *schema.Job) *state.Job {
	if j := d.next.Jobs[want.Addr]; j != nil {
		return d.adopt(j)
	}
	return d.admit(want)
}

// admit records a job that was not there before, and returns it: if it was found
// running, it is like any other. It is nil if the job cannot be recorded.
func (d *differ) admit(want *schema.Job) *state.Job {
	digest, err := schema.DigestOf(want)
	if err != nil {
		d.wait(want.Addr, because(WaitConstraint, err.Error()))
		return nil
	}
	j := &state.Job{
		ID:     JobID(d.doc.Lineage, want.Addr, d.doc.Revision),
		Spec:   want,
		Digest: digest,
		Status: schema.JobPending, AdmittedAt: d.now,
	}
	d.mutable().Jobs[want.Addr] = j
	d.editedJobs = append(d.editedJobs, want.Addr)
	return d.adopt(j)
}

// changeOf is what a job's new spec means for it where it is: slices in zones that
// it is not to be in any more are replaced.
func (d *differ) changeOf(want *schema.Job, j *state.Job) Change {
	change := changeOf(want, j)
	isPlace := func(a AttrChange) bool {
		return a.Verb != VerbNone && (a.Path == "resources.zones" || a.Path == "resources.regions")
	}
	if why := d.outside(want, j.Slices); !why.none() && change.Verb != VerbReplace && slices.ContainsFunc(change.Attrs, isPlace) {
		change.Verb, change.Reason, change.ActionReason = VerbReplace, why.text, ReplaceBecauseUpdate
	}
	if change.Verb == VerbUpdate || change.Verb == VerbRestart {
		if why := d.outgrows(want, j); !why.none() {
			change.Verb, change.Reason, change.ActionReason = VerbReplace, why.text, ReplaceBecauseUpdate
		}
	}
	change.explain(j.Causes)
	return change
}

// changeOf compares a job's spec with what was last carried out.
func changeOf(want *schema.Job, cur *state.Job) Change {
	change := Change{Addr: want.Addr, Verb: VerbNone}
	if !sameSpec(want, cur) {
		change.Attrs = changedAttrs(jobAttrs(cur.Spec), jobAttrs(want))
		change.Verb = strongest(change.Attrs)
		if change.Verb == VerbRestart && cur.Attempt == 0 {
			change.Verb = VerbUpdate // it has not started yet
		}
	}
	if change.Verb == VerbReplace {
		change.ActionReason = ReplaceBecauseUpdate
	}
	switch {
	case cur.Replace:
		change.Verb, change.Reason, change.ActionReason = VerbReplace, "asked for by --replace", ReplaceByRequest
	case triggered(want, cur):
		if change.Verb != VerbReplace {
			change.Verb, change.Reason, change.ActionReason = VerbReplace, replaceTriggeredBy, ReplaceByTriggers
		}
	case change.Verb != VerbNone:
	case cur.Status == schema.JobFailed:
		change.Reason = fmt.Sprintf("failed: %s; it stays so until it changes or --replace=%s", cur.Reason, quoteArg(want.Addr))
	case cur.Status == schema.JobStopped:
		change.Reason = "stopped; it stays so until it changes or --replace=" + quoteArg(want.Addr)
	}
	if change.Verb == VerbReplace && change.Attrs == nil {
		change.Attrs = changedAttrs(jobAttrs(cur.Spec), jobAttrs(want))
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

// sameSpec reports whether a job is as it was carried out: the same value, or
// one that reads otherwise but has the same digest. Digests of different
// versions are never equal, so that the attributes decide.
func sameSpec(want *schema.Job, cur *state.Job) bool {
	if cur.Spec == want || equalJobs(cur.Spec, want) {
		return true
	}
	digest, err := schema.DigestOf(want)
	return err == nil && digest == cur.Digest
}

// carryOut moves an existing job towards its spec.
func (d *differ) carryOut(want *schema.Job, j *state.Job, change *Change) {
	addr, verb := want.Addr, change.Verb
	switch verb {
	case VerbReplace, VerbRestart:
		if j.Running() && want.HasUnknown() {
			// What runs goes on until it is known what takes its place.
			d.watchAttempt(j)
			d.wait(addr, depends("some of its new values are not known yet"))
			return
		}
		if verb == VerbReplace && want.Lifecycle.CreateBeforeDestroy {
			if d.stages(want) {
				d.staging = append(d.staging, staging{want: want, change: len(d.plan.Changes) - 1})
				d.watchAttempt(j)
				return
			}
			if len(j.Staged) > 0 { // it has been ended, or ended by itself
				d.handOver(want)
				return
			}
		}
		d.unstage(addr)
		if verb == VerbReplace && d.released(addr, replaced(d.next.Jobs[addr])) || verb == VerbRestart && d.restarted(addr, change.Attrs) {
			d.renew(want)
		}
		return
	case VerbUpdate:
		d.takeOver(want)
	case VerbNone, VerbCreate, VerbDelete:
	}
	d.unstage(addr)
	switch j = d.next.Jobs[addr]; {
	case d.isOverdueStart(want, j):
		d.unschedulable(want)
	case j.Stop && !j.Status.Ended():
		if d.released(addr, decided(state.CauseStopped)) {
			e := d.edit(addr)
			e.Status, e.Reason, e.Ready, e.Stop = schema.JobStopped, decisionText(state.CauseStopped), false, false
		}
	case j.Status.Ended():
		d.released(addr, decided(state.CauseEnded))
	case !j.YieldsTo.IsZero():
		d.yield(addr)
	case j.Running():
		d.watchAttempt(j)
	}
}

// restarted ends a job's attempt for a changed spec and reports whether none runs
// any more.
func (d *differ) restarted(addr schema.Address, attrs []AttrChange) bool {
	if !d.next.Jobs[addr].Running() {
		return true
	}
	if last := d.next.Jobs[addr].Last(); last.StopGeneration == 0 {
		causes := d.next.Jobs[addr].Causes
		last = d.edit(addr).Last()
		last.Changed = restartAttrs(attrs)
		last.Causes = causesOf(last.Changed, causes)
	}
	last := d.next.Jobs[addr].Last()
	return d.ended(addr, changedText(last.Changed, last.Causes)) // it counts only if nothing ended it before
}

// restartAttrs are the paths of the attributes for which tasks are started again.
func restartAttrs(attrs []AttrChange) []string {
	var paths []string
	for i := range attrs {
		if attrs[i].Verb == VerbRestart {
			paths = append(paths, attrs[i].Path)
		}
	}
	if paths == nil {
		paths = []string{"its configuration"}
	}
	return paths
}

// ended ends a job's attempt in place and reports whether none runs any more.
func (d *differ) ended(addr schema.Address, why string) bool {
	if d.next.Jobs[addr].Running() {
		d.end(addr, schema.TaskKilled, why)
	}
	return !d.next.Jobs[addr].Running()
}

// takeOver records the new spec without touching what runs.
func (d *differ) takeOver(want *schema.Job) *state.Job {
	e := d.edit(want.Addr)
	spec := *want // of its own, or it would keep every other job of this desired
	e.Spec, e.Causes = &spec, nil
	if digest, err := schema.DigestOf(want); err == nil {
		e.Digest = digest
	}
	d.tally(want.Addr)
	return e
}

// renew starts a job over under its new spec.
func (d *differ) renew(want *schema.Job) *state.Job {
	e := d.takeOver(want)
	e.Status, e.Reason, e.Ready = schema.JobPending, "", false
	e.Failures, e.Preemptions, e.UnknownEnds, e.Streak = 0, 0, 0, 0
	e.RetryAt, e.AdmittedAt = time.Time{}, d.now
	e.Replace, e.Stop = false, false
	return e
}

// removals takes down jobs that are no longer declared, dependents first, and
// drops declarations that nothing stands in any more.
func (d *differ) removals() {
	removed := d.undeclared()
	d.leaving = make(map[schema.Address]bool, len(removed))
	for _, addr := range removed {
		d.leaving[addr] = true
	}
	blockers := d.blockers(removed)
	occupied := map[schema.Address]bool{} // groups
	for _, addr := range removed {
		d.removeJob(addr, blockers)
		if d.next.Jobs[addr] != nil {
			occupied[addr.GroupAddress()] = true
		}
	}
	var recorded map[schema.Address][]string
	for _, addr := range d.withdrawn {
		if recorded == nil {
			recorded = d.poolSlices()
		}
		switch {
		case addr.Kind == schema.KindJobGroup && occupied[addr]:
			d.wait(addr, underway("its jobs are being deleted"))
		case addr.Kind == schema.KindReservation && d.shrink(addr, recorded[addr], nil):
			d.dissolving = true
		case d.isRemembered(addr):
		default:
			delete(d.mutable().Resources, addr)
		}
	}
	d.forgetGroups()
}

// undeclared are the recorded jobs that are desired no more, in address order.
func (d *differ) undeclared() []schema.Address {
	if d.recorded == len(d.doc.Jobs) {
		return nil
	}
	wanted := make(map[schema.Address]bool, len(d.desired.Jobs))
	for i := range d.desired.Jobs {
		wanted[d.desired.Jobs[i].Addr] = true
	}
	var removed []schema.Address
	for addr := range d.doc.Jobs {
		if !wanted[addr] {
			removed = append(removed, addr)
		}
	}
	slices.SortFunc(removed, schema.Address.Compare)
	return removed
}

// blockers names, for each removed job, another one that depends on it and so
// goes first. If they all depend on one another, none blocks.
func (d *differ) blockers(removed []schema.Address) map[schema.Address]schema.Address {
	dependents := map[schema.Address][]schema.Address{} // by what they name
	for _, addr := range removed {
		spec := d.doc.Jobs[addr].Spec
		for _, on := range spec.DependsOn {
			dependents[on] = append(dependents[on], addr)
		}
		for _, on := range spec.Uses {
			dependents[on] = append(dependents[on], addr)
		}
	}
	blockers := map[schema.Address]schema.Address{}
	for _, addr := range removed {
		named := []schema.Address{addr, addr.Base()}
		if group := addr.GroupAddress(); !group.IsZero() {
			named = append(named, group)
		}
		for _, on := range named {
			for _, by := range dependents[on] {
				if by.Base() != addr.Base() && (on.Kind != schema.KindJobGroup || by.GroupAddress() != addr.GroupAddress()) {
					blockers[addr] = by
				}
			}
		}
	}
	if len(blockers) == len(removed) {
		return nil
	}
	return blockers
}

func (d *differ) removeJob(addr schema.Address, blockers map[schema.Address]schema.Address) {
	if d.doc.Jobs[addr].Launch == nil { // else it is forgotten
		d.plan.Changes = append(d.plan.Changes, Change{
			Addr: addr, Verb: VerbDelete, Attrs: changedAttrs(jobAttrs(d.doc.Jobs[addr].Spec), nil),
		})
	}
	if by, blocked := blockers[addr]; blocked {
		d.wait(addr, underway(by.String()+" is deleted before it"))
		return
	}
	if j := d.adopt(d.doc.Jobs[addr]); j.Running() {
		d.observe(j)
	}
	d.unstage(addr)
	if d.released(addr, decided(state.CauseJobRemoved)) {
		delete(d.mutable().Jobs, addr)
		d.editedJobs = append(d.editedJobs, addr)
		d.tally(addr)
	}
}
