package snapshot

import (
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Family returns the desired jobs that an address without an instance stands
// for: the instances of a job, or the jobs of a group.
func (d *Draft) Family(of schema.Address) []*schema.Job {
	if d.FamilyOf != nil {
		return d.FamilyOf(of)
	}
	if d.families == nil {
		d.families = map[schema.Address][]*schema.Job{}
		for i := range d.Desired.Jobs {
			job := &d.Desired.Jobs[i]
			for _, addr := range FamiliesOf(job.Addr) {
				d.families[addr] = append(d.families[addr], job)
			}
		}
	}
	return d.families[of]
}

// FamiliesOf are the addresses without an instance that stand for a job among others.
func FamiliesOf(job schema.Address) []schema.Address {
	if job.Group == "" {
		return []schema.Address{job.Base()}
	}
	return []schema.Address{job.Base(), job.GroupAddress()}
}

// Replan has a draft plan for another configuration than the one that it was given.
func (d *Draft) Replan(desired *schema.Desired) {
	d.Desired, d.FamilyOf, d.families, d.found = desired, nil, nil, foundJobs{}
}

// Mutable returns next, cloned at the first call, but for its jobs and slices.
func (d *Draft) Mutable() *state.Document {
	if d.Next == d.base {
		d.Next = d.base.CloneAround()
	}
	return d.Next
}

// mutableJobs are the jobs of next, cloned at the first call.
func mutableJobs(d *Draft) map[schema.Address]*state.Job {
	next := d.Mutable()
	if !d.shared.ownJobs {
		next.Jobs, d.shared.ownJobs = withRoom(next.Jobs, expected(&d.Input)), true
	}
	return next.Jobs
}

// expected is how many jobs, and slices, a document is expected to have: a part of a stack has about
// those that it was given.
func expected(in *Input) int {
	if in.Rest != nil {
		return 0
	}
	return len(in.Desired.Jobs)
}

// withRoom is a copy of a map, with room for some entries where it has much fewer: maps that
// grow are written again and again.
func withRoom[K comparable, V any](m map[K]V, room int) map[K]V {
	if len(m) > room/2 {
		return maps.Clone(m)
	}
	larger := make(map[K]V, room)
	maps.Copy(larger, m)
	return larger
}

// MutableSlices are the slices of next, cloned at the first call.
func (d *Draft) MutableSlices() map[string]*state.Slice {
	next := d.Mutable()
	if !d.shared.ownSlices {
		next.Slices, d.shared.ownSlices = withRoom(next.Slices, expected(&d.Input)), true
	}
	return next.Slices
}

// Edit returns a copy of a job that may be changed, and records it in next.
func (d *Draft) Edit(addr schema.Address) *state.Job {
	cur := d.JobAt(addr)
	if cur != d.base.Jobs[addr] {
		return cur // copied before
	}
	j := *cur
	j.Attempts = slices.Clone(cur.Attempts)
	if last := j.Last(); last != nil {
		last.Tasks = slices.Clone(last.Tasks)
	}
	mutableJobs(d)[addr] = &j
	d.found.note(d.Desired.Jobs, addr, &j)
	if cur == d.Doc.Jobs[addr] {
		d.EditedJobs = append(d.EditedJobs, addr)
	}
	return &j
}

// Act adds an action, at most one for a slice: a deletion takes the place of
// any other, else the first one stands and the next Diff asks for the rest.
func (d *Draft) Act(a plan.Action) {
	i, acting := d.Acting[a.Slice.Name]
	switch {
	case !acting:
		d.Acting[a.Slice.Name] = len(d.Plan.Actions)
		d.Plan.Actions = append(d.MutableActions(), a)
	case a.Verb == plan.DeleteSlice:
		d.MutableActions()[i] = a
	}
}

// WakeAt asks to be called again at t, when time alone changes something.
func (d *Draft) WakeAt(t time.Time) {
	if t.After(d.Now) && (d.Plan.Wake.IsZero() || t.Before(d.Plan.Wake)) {
		d.Plan.Wake = t
	}
}

// Drift records a difference between the state and what was observed.
func (d *Draft) Drift(drift plan.Drift) {
	d.Plan.Drift = append(d.Plan.Drift, drift)
}

// ObserveLifecycle records the lifecycle of a job and returns the job as it now
// stands.
func (d *Draft) ObserveLifecycle(want *schema.Job, j *state.Job) *state.Job {
	if j.Spec == want {
		return j
	}
	kept := change.Beside(want, j)
	if kept == j {
		return j
	}
	e := d.Edit(want.Addr)
	e.Spec, e.Digest = kept.Spec, kept.Digest
	return e
}
