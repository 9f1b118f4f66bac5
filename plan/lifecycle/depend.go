package lifecycle

import (
	"fmt"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Dependency is one address that jobs wait for.
type Dependency struct {
	on    schema.Address
	Ready bool // being ready is asked for, not having succeeded
	// again: the dependent has run before, and only its next try waits. Then
	// what ended for good is not waited for: it was met once, and a service
	// must not stay down because something that it needed to start failed later.
	Again bool
}

// Unmet says what a job's dependencies still lack, none when nothing. Where unit
// is given, dependencies inside it do not count: a group is placed whole, and
// its order matters only when it starts.
func (d *Jobs) Unmet(want *schema.Job, unit []*schema.Job) plan.Reason {
	if len(want.DependsOn) == 0 && len(want.Uses) == 0 {
		return plan.Reason{}
	}
	again := d.JobAt(want.Addr).Status == schema.JobRunning
	for _, on := range want.DependsOn {
		if why := d.unmetOn(Dependency{on: on, Again: again}, want, unit); !why.None() {
			return why
		}
	}
	for _, on := range want.Uses {
		if why := d.unmetOn(Dependency{on: on, Ready: true, Again: again}, want, unit); !why.None() {
			return why
		}
	}
	return plan.Reason{}
}

func (d *Jobs) unmetOn(dep Dependency, want *schema.Job, unit []*schema.Job) plan.Reason {
	if g := want.Addr.GroupAddress(); !g.IsZero() {
		if unit != nil && dep.on.GroupAddress() == g || dep.on == g {
			return plan.Reason{} // a job cannot wait for what it is itself part of
		}
	}
	if j := d.Next.Jobs[dep.on]; j != nil {
		return dep.State(j.Spec, j)
	}
	// Of many jobs; the answer is the same for all who ask.
	why, seen := d.met[dep]
	if !seen {
		why = d.unmetAmong(dep)
		if d.met == nil {
			d.met = map[Dependency]plan.Reason{}
		}
		d.met[dep] = why
	}
	return why
}

// unmetAmong says what a dependency on all instances of a job, or all jobs of a
// group, still lacks. Namespaces and reservations have none: they are there as
// soon as they are declared.
func (d *Jobs) unmetAmong(dep Dependency) plan.Reason {
	waiting, first := 0, plan.Reason{}
	for _, t := range d.Family(dep.on) {
		why := dep.State(t, d.Next.Jobs[t.Addr])
		if why.None() {
			continue
		}
		if first.None() || first.Underway && !why.Underway {
			first = why // what does not come by itself is worth more
		}
		waiting++
	}
	if waiting > 0 {
		first.Text += change.More(waiting - 1)
	}
	return first
}

// State says why a job is not yet what its dependents wait for.
func (dep Dependency) State(t *schema.Job, j *state.Job) plan.Reason {
	enduring := dep.Ready || t.IsService() || t.HealthCheck != nil
	switch {
	case j == nil:
		return plan.Depends("waits for " + t.Addr.String() + ", which is not there yet")
	case j.Status == schema.JobSucceeded, j.Status.Ended() && dep.Again:
		return plan.Reason{}
	case j.Status.Ended():
		return plan.Because(plan.WaitBlocked, fmt.Sprintf("waits for %s, which %s (%s)", t.Addr, pastTense(j.Status), j.Reason))
	case enduring && j.Ready:
		return plan.Reason{}
	case enduring:
		return plan.Depends("waits for " + t.Addr.String() + " to be ready")
	}
	return plan.Depends("waits for " + t.Addr.String() + " to succeed")
}

func pastTense(s schema.JobStatus) string {
	if s == schema.JobStopped {
		return "was stopped"
	}
	return string(s)
}
