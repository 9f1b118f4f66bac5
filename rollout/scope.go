package rollout

import (
	"fmt"
	"slices"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/progress"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/terminal"
)

// scopeOf is what this change may touch and waits for: what its plan names, of
// which targets leave only themselves and what they depend on.
func (r *Rollout) scopeOf(p *plan.Plan) apply.Scope {
	r.chosen = r.chosenOf(p)
	scope := apply.ScopeOf(p)
	if r.chosen != nil {
		scope = apply.ScopeWithin(p, r.chosen)
		r.progress.Tells = r.answersFor
	}
	scope.Ended = r.chosen == nil
	if r.Options.Wait == waitComplete {
		for _, c := range p.Changes { // following a job means retrying it
			if r.answersFor(c.Addr) {
				scope.Addrs[c.Addr] = true
			}
		}
	}
	return scope
}

// chosenOf reports what targets choose; nil where everything is meant.
func (r *Rollout) chosenOf(p *plan.Plan) func(schema.Address) bool {
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

// unfinished is what the last look still has to do of what this change answers for,
// although nothing that it was to do is left: something else happened meanwhile.
// A plan made now would name it.
func (r *Rollout) unfinished() []plan.Pending {
	last := r.Executor.Last()
	if last == nil || r.Destroying || r.Stopping {
		return nil
	}
	var found []plan.Pending
	add := func(addr schema.Address, text string) {
		if !r.answersFor(addr) {
			return
		}
		if n := len(found); n > 0 && found[n-1].Addr == addr {
			found[n-1].Reasons = append(found[n-1].Reasons, text)
			return
		}
		found = append(found, plan.Pending{Addr: addr, Reasons: []string{text}})
	}
	for i := range last.Changes {
		if c := &last.Changes[i]; c.Verb != plan.VerbNone {
			add(c.Addr, fmt.Sprintf("it is still to be %s", changeWords(c.Verb)))
		}
	}
	for _, d := range last.Drift {
		add(d.Addr, d.Found+"; "+d.Then)
	}
	for _, a := range slices.Concat(last.Actions, r.Executor.Beyond()) {
		add(a.Addr, "slice "+a.Slice.Name+" is to be "+actionWords(a.Verb))
	}
	return found
}

// stillUnfinished says what is left for the next apply, nil if nothing is.
func (r *Rollout) stillUnfinished() error {
	if len(r.left) == 0 {
		return nil
	}
	return &terminal.Exit{Code: terminal.ExitPending, Msg: "what the plan named is done, but meanwhile there is more to do:\n" + progress.ReasonLines(r.left) +
		"fray plan shows it; another fray apply does it, or fray watch."}
}

// changeWords are what happens to an address: "created", "restarted".
func changeWords(v plan.Verb) string {
	switch v {
	case plan.VerbCreate, plan.VerbUpdate, plan.VerbReplace, plan.VerbDelete:
		return string(v) + "d"
	case plan.VerbRestart:
		return "restarted"
	case plan.VerbNone:
	}
	return "looked at"
}

// actionWords are what happens to a slice: "created", "deleted".
func actionWords(v plan.ActionVerb) string {
	switch v {
	case plan.CreateSlice:
		return "created"
	case plan.RepairSlice:
		return "completed: some of its hosts are missing"
	case plan.UpdateSlice:
		return "changed in place"
	case plan.DeleteSlice:
		return "deleted"
	case plan.ForgetSlice:
		return "removed from the store: it is gone"
	case plan.Assign:
	}
	return "told what it runs"
}

// stillPending names what the time did not suffice for.
func (r *Rollout) stillPending() error {
	waiting := r.waiting()
	msg := fmt.Sprintf("after %s this still waits:\n%s", r.Options.Timeout, progress.ReasonLines(waiting))
	switch {
	case r.Destroying:
		msg = fmt.Sprintf("after %s this is not destroyed yet:\n%sIt is recorded as to be destroyed: another fray destroy, or fray watch, goes on with it.", r.Options.Timeout, progress.ReasonLines(waiting))
	case r.Stopping:
		msg = fmt.Sprintf("after %s this has not stopped yet:\n%sIt is recorded as to be stopped: another fray stop, or fray watch, goes on with it.", r.Options.Timeout, progress.ReasonLines(waiting))
	default:
		msg += "It stays declared: fray watch or another fray apply goes on with it."
	}
	if failed := r.failedJobs(r.Executor.Document(), r.targeted); failed != nil && !r.Destroying && !r.Stopping {
		msg += "\nBesides, " + failed.Error()
	}
	return &terminal.Exit{Code: terminal.ExitPending, Msg: msg}
}

// waiting is what of this change still waits, or runs and is waited for.
func (r *Rollout) waiting() []plan.Pending {
	doc := r.Executor.Document()
	var out []plan.Pending
	if last := r.Executor.Last(); last != nil {
		out = withRest(withRest(withActions(r.awaited(), last.Actions, r.answersFor), r.unsure()), r.left)
	}
	if r.Options.Wait != waitComplete {
		return out
	}
	for _, addr := range stack.SortedJobs(doc) {
		if j := doc.Jobs[addr]; j.Ready && !j.Status.Ended() && !j.Spec.IsService() && r.scope.Names(addr) && r.answersFor(addr) {
			out = append(out, plan.Pending{Addr: addr, Kind: plan.WaitUnderway, Reasons: []string{"it is running"}})
		}
	}
	return out
}

// withActions adds what is being done to what waits, where that does not say it.
func withActions(waits []plan.Pending, actions []plan.Action, of func(schema.Address) bool) []plan.Pending {
	named := map[schema.Address]bool{}
	for _, w := range waits {
		named[w.Addr] = true
	}
	out := slices.Clone(waits)
	for _, a := range actions {
		if named[a.Addr] || !of(a.Addr) {
			continue
		}
		what := "slice " + a.Slice.Name + " is being " + actionWords(a.Verb)
		n := slices.IndexFunc(out[len(waits):], func(w plan.Pending) bool { return w.Addr == a.Addr })
		if n >= 0 {
			out[len(waits)+n].Reasons = append(out[len(waits)+n].Reasons, what)
			continue
		}
		out = append(out, plan.Pending{Addr: a.Addr, Kind: plan.WaitUnderway, Reasons: []string{what}, Underway: true})
	}
	return out
}

// withRest adds what else waits, of the addresses of which nothing is said.
func withRest(waits, rest []plan.Pending) []plan.Pending {
	out := slices.Clone(waits)
	for _, w := range rest {
		if !slices.ContainsFunc(waits, func(said plan.Pending) bool { return said.Addr == w.Addr }) {
			out = append(out, w)
		}
	}
	return out
}
