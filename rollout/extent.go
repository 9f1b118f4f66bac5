package rollout

import (
	"slices"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// extent is what a change may touch, waits for and fails with.
type extent struct {
	*Rollout

	scope apply.Scope
	// chosen are the targets and what they depend on; nil: everything is meant.
	chosen func(schema.Address) bool
}

// setFromPlan sets the extent to what a plan names, of which targets leave only themselves
// and what they depend on.
func (r *extent) setFromPlan(p *plan.Plan) {
	r.chosen = r.chosenOf(p)
	r.scope = apply.ScopeOf(p)
	if r.chosen != nil {
		r.scope = apply.ScopeWithin(p, r.chosen)
	}
	r.scope.Ended = r.chosen == nil
	if r.Options.Wait == WaitComplete {
		for _, c := range p.Changes { // following a job means retrying it
			if r.answersFor(c.Addr) {
				r.scope.Addrs[c.Addr] = true
			}
		}
	}
}

// chosenOf reports what targets choose; nil where everything is meant.
func (r *extent) chosenOf(p *plan.Plan) func(schema.Address) bool {
	contained := func(in []schema.Address) func(schema.Address) bool {
		return func(addr schema.Address) bool {
			return slices.ContainsFunc(in, func(a schema.Address) bool { return a.Contains(addr) })
		}
	}
	switch {
	case r.Stopping:
		return contained(r.Change.Stop)
	case r.Destroying && len(r.Change.Unlaunch) > 0: // with what depends on them
		named, deleted := contained(r.Change.Unlaunch), map[schema.Address]bool{}
		for _, c := range p.Changes {
			deleted[c.Addr] = c.Verb == plan.VerbDelete
		}
		return func(addr schema.Address) bool { return deleted[addr] || named(addr) }
	case len(r.Change.Targets) > 0 && p.Next != nil:
		return apply.Chosen(p.Next.Desired, r.Change.Targets)
	}
	return nil
}

// answersFor reports whether this change waits for an address and fails with it:
// with targets, for those and what they depend on; what programs launched is
// theirs, unless it is to go or was asked for.
func (r *extent) answersFor(addr schema.Address) bool {
	if r.chosen != nil && !r.chosen(addr) {
		return false
	}
	if !addr.IsLaunched() || r.Destroying || r.Stopping {
		return true
	}
	contains := func(a schema.Address) bool { return a.Contains(addr) }
	return slices.ContainsFunc(r.Change.Targets, contains) || slices.ContainsFunc(r.Change.Replace, contains)
}

// targeted reports whether an address is among the targets, all where there are none.
func (r *extent) targeted(addr schema.Address) bool {
	for _, t := range r.Change.Targets {
		if t.Contains(addr) {
			return true
		}
	}
	return len(r.Change.Targets) == 0
}

// concerns reports whether the failure of a job is one of this change: it was
// acted on, or there was nothing to do and the job is why not all is well.
func (r *extent) concerns(p *plan.Plan) func(schema.Address) bool {
	if r.Destroying || r.Stopping || r.concerned(p) {
		return r.scope.Names
	}
	return r.targeted
}

// concerned reports whether there is something to do or to wait for in a plan that
// this change answers for.
func (r *extent) concerned(p *plan.Plan) bool {
	return len(p.Amendments) > 0 ||
		slices.ContainsFunc(p.Changes, func(c plan.Change) bool { return c.Verb != plan.VerbNone && r.answersFor(c.Addr) }) ||
		slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return r.answersFor(a.Addr) }) ||
		slices.ContainsFunc(p.Drift, func(d plan.Drift) bool { return r.answersFor(d.Addr) }) ||
		slices.ContainsFunc(p.Pending, func(w plan.Pending) bool { return r.answersFor(w.Addr) })
}
