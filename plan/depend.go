package plan

import (
	"fmt"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// dependency is one thing that jobs wait for.
type dependency struct {
	on    schema.Address
	ready bool // being ready is asked for, not having succeeded
	// again: whoever waits has run before, and only its next try waits. Then
	// what ended for good is not waited for: it was met once, and a service
	// must not stay down because something that it needed to start failed later.
	again bool
}

// unmet says what a job's dependencies still lack, none when nothing. Where unit
// is given, dependencies inside it do not count: a group is placed whole, and
// its order matters only when it starts.
func (d *differ) unmet(want *schema.Job, unit []*schema.Job) reason {
	if len(want.DependsOn) == 0 && len(want.Uses) == 0 {
		return reason{}
	}
	again := d.next.Jobs[want.Addr].Status == schema.JobRunning
	for _, on := range want.DependsOn {
		if why := d.unmetOn(dependency{on: on, again: again}, want, unit); !why.none() {
			return why
		}
	}
	for _, on := range want.Uses {
		if why := d.unmetOn(dependency{on: on, ready: true, again: again}, want, unit); !why.none() {
			return why
		}
	}
	return reason{}
}

func (d *differ) unmetOn(dep dependency, want *schema.Job, unit []*schema.Job) reason {
	if g := want.Addr.GroupAddress(); !g.IsZero() {
		if unit != nil && dep.on.GroupAddress() == g || dep.on == g {
			return reason{} // a job cannot wait for what it is itself part of
		}
	}
	if j := d.next.Jobs[dep.on]; j != nil {
		return dep.state(j.Spec, j)
	}
	// Of many jobs; the answer is the same for all who ask.
	why, seen := d.met[dep]
	if !seen {
		why = d.unmetAmong(dep)
		if d.met == nil {
			d.met = map[dependency]reason{}
		}
		d.met[dep] = why
	}
	return why
}

// unmetAmong says what a dependency on all instances of a job, or all jobs of a
// group, still lacks. Namespaces and reservations have none: they are there as
// soon as they are declared.
func (d *differ) unmetAmong(dep dependency) reason {
	waiting, first := 0, reason{}
	for _, t := range d.family(dep.on) {
		why := dep.state(t, d.next.Jobs[t.Addr])
		if why.none() {
			continue
		}
		if first.none() || first.underway && !why.underway {
			first = why // what does not come by itself is worth more
		}
		waiting++
	}
	if waiting > 0 {
		first.text += more(waiting - 1)
	}
	return first
}

// state says why a job is not yet what its dependents wait for.
func (dep dependency) state(t *schema.Job, j *state.Job) reason {
	enduring := dep.ready || t.IsService() || t.HealthCheck != nil
	switch {
	case j == nil:
		return depends("waits for " + t.Addr.String() + ", which is not there yet")
	case j.Status == schema.JobSucceeded, j.Status.Ended() && dep.again:
		return reason{}
	case j.Status.Ended():
		return because(WaitBlocked, fmt.Sprintf("waits for %s, which %s (%s)", t.Addr, pastTense(j.Status), j.Reason))
	case enduring && j.Ready:
		return reason{}
	case enduring:
		return depends("waits for " + t.Addr.String() + " to be ready")
	}
	return depends("waits for " + t.Addr.String() + " to succeed")
}

func pastTense(s schema.JobStatus) string {
	if s == schema.JobStopped {
		return "was stopped"
	}
	return string(s)
}
