package incremental

import (
	"slices"

	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Refined returns doc with another configuration. Where doc is what the last
// plan led to, and the configurations differ in no more than the commands and
// environments of jobs, as they do when values become known, the next call of
// Diff looks at those jobs and at what goes on; doc is then good no longer than
// what is returned. The order of jobs is that of addresses. As with [Accepted], it
// is settled first.
func (p *Planner) Refined(doc *state.Document, desired *schema.Desired) *state.Document {
	entering := change.Settled(*desired, doc)
	desired = &entering
	changed, ok := p.reworded(doc, desired)
	if !ok {
		return change.Accepted(doc, *desired)
	}
	for _, i := range changed {
		delete(p.turns.jobs, i) // what was decided about it stands no more
		if p.conditions[i] == dirty {
			continue
		}
		p.markDirty(i)
		at, _ := slices.BinarySearch(p.dirty, i)
		p.dirty = slices.Insert(slices.Clip(p.dirty), at, i)
	}
	next := *doc
	next.Desired = *desired
	p.last, p.declared, p.desired = &next, next.Desired, next.Desired
	p.members = nil // of the jobs that were
	return &next
}

// reworded are the jobs that read otherwise than in the last configuration. It
// reports false if that is not all that is new.
func (p *Planner) reworded(doc *state.Document, desired *schema.Desired) ([]int, bool) {
	was := &p.desired
	if doc != p.last || p.takedown != nil || !sameDeclarations(&doc.Desired, was) || len(desired.Jobs) != len(was.Jobs) ||
		!state.SameSlice(desired.Groups, was.Groups) || !state.SameSlice(desired.Namespaces, was.Namespaces) ||
		!state.SameSlice(desired.Reservations, was.Reservations) || !state.SameSlice(desired.Notifications, was.Notifications) || !state.SameSlice(desired.Providers, doc.Desired.Providers) {
		return nil, false
	}
	var changed []int
	for i := range desired.Jobs {
		a, b := &was.Jobs[i], &desired.Jobs[i]
		if !change.EqualLifecycles(&a.Lifecycle, &b.Lifecycle) {
			return nil, false
		}
		if schema.EqualJobs(a, b) {
			continue
		}
		worded := *a
		worded.Command, worded.Environment.Env = b.Command, b.Environment.Env
		if !schema.EqualJobs(&worded, b) {
			return nil, false
		}
		changed = append(changed, i)
	}
	return changed, true
}
