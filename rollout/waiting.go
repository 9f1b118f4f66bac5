package rollout

import (
	"fmt"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
)

// waiting is what of this change still waits, or runs and is waited for.
func (r *run) waiting() []plan.Pending {
	doc := r.stepper.Document()
	var out []plan.Pending
	if last := r.stepper.Last(); last != nil {
		out = withRest(withRest(withActions(r.awaited(), last.Actions, r.answersFor), r.unsure()), r.leftBefore)
	}
	if r.Options.Wait != WaitComplete {
		return out
	}
	for _, addr := range stack.SortedJobs(doc) {
		if j := doc.Jobs[addr]; j.Ready && !j.Status.Ended() && !j.Spec.IsService() && r.scope.Names(addr) && r.answersFor(addr) {
			out = append(out, plan.Pending{Addr: addr, Kind: plan.WaitUnderway, Reasons: []string{"it is running"}})
		}
	}
	return out
}

// awaited is what still waits of what this change answers for.
func (r *run) awaited() []plan.Pending {
	others := func(w plan.Pending) bool { return !r.answersFor(w.Addr) }
	return slices.DeleteFunc(r.scope.Pending(r.stepper.Last()), others)
}

// unsure are the slices on their way out that this change answers for, and those of
// which it is not known whether they are there. A destroy of everything is over once
// no slice is recorded.
func (r *run) unsure() []plan.Pending {
	last := r.stepper.Last()
	var out []plan.Pending
	add := func(addr schema.Address, text string) {
		if r.answersFor(addr) {
			out = append(out, plan.Pending{Addr: addr, Kind: plan.WaitUnderway, Reasons: []string{text}, Underway: true})
		}
	}
	for _, s := range r.scope.Leaving(last) {
		add(s.Spec.Owner, "slice "+s.Spec.Name+" is being deleted: "+s.Terminating.Text)
	}
	for _, d := range r.scope.Doubts(last) {
		add(d.Slice.Owner, "it is being confirmed whether slice "+d.Slice.Name+" is as its provider lists it")
	}
	if len(out) == 0 && r.Destroying && r.Change.UnlaunchAll && last.Next != nil {
		for name, s := range last.Next.Slices {
			add(s.Spec.Owner, "slice "+name+" is still recorded")
		}
	}
	return out
}

// unfinished is what the last plan still has to do of what this change answers for,
// although nothing that it was to do is left: something else happened meanwhile.
// A plan made now would name it.
func (r *run) unfinished() []plan.Pending {
	last := r.stepper.Last()
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
			add(c.Addr, fmt.Sprintf("it is still to be %s", changeDone(c.Verb)))
		}
	}
	for _, d := range last.Drift {
		add(d.Addr, d.Found+"; "+d.Then)
	}
	for _, a := range slices.Concat(last.Actions, r.stepper.OutOfScope()) {
		add(a.Addr, "slice "+a.Slice.Name+" is to be "+actionDone(a.Verb))
	}
	return found
}

// withActions adds what is being done to what waits, where that does not name it.
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
		what := "slice " + a.Slice.Name + " is being " + actionDone(a.Verb)
		n := slices.IndexFunc(out[len(waits):], func(w plan.Pending) bool { return w.Addr == a.Addr })
		if n >= 0 {
			out[len(waits)+n].Reasons = append(out[len(waits)+n].Reasons, what)
			continue
		}
		out = append(out, plan.Pending{Addr: a.Addr, Kind: plan.WaitUnderway, Reasons: []string{what}, Underway: true})
	}
	return out
}

// withRest adds what else waits, of the addresses that are not named yet.
func withRest(waits, rest []plan.Pending) []plan.Pending {
	out := slices.Clone(waits)
	for _, w := range rest {
		if !slices.ContainsFunc(waits, func(named plan.Pending) bool { return named.Addr == w.Addr }) {
			out = append(out, w)
		}
	}
	return out
}

// changeDone is what happens to an address: "created", "restarted".
func changeDone(v plan.Verb) string {
	switch v {
	case plan.VerbCreate, plan.VerbUpdate, plan.VerbReplace, plan.VerbDelete:
		return string(v) + "d"
	case plan.VerbRestart:
		return "restarted"
	case plan.VerbNone:
	}
	return "checked"
}

// actionDone is what happens to a slice: "created", "deleted".
func actionDone(v plan.ActionVerb) string {
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
	return "assigned"
}
