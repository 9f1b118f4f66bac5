package apply

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Request is what a client asks of a stack: a new desired configuration, and
// jobs to be replaced or stopped whether or not they changed.
type Request struct {
	Desired schema.Desired
	Replace []schema.Address // of jobs, groups, services or single instances
	Stop    []schema.Address
	// Unlaunch are what programs launched that is to be deleted, UnlaunchAll all of it.
	Unlaunch    []schema.Address
	UnlaunchAll bool
	// Recorded names the recording of the configuration, "" for none; with
	// KeepRecorded it stays the one that it was, if any job does.
	Recorded     string
	KeepRecorded bool
	// By is who asks, for people.
	By string
	// Explanation has the causes of changes; nil: no more causes than before are known.
	Explanation *Explanation
}

// Explanation has the causes of changes, and what the next changes are explained by.
type Explanation struct {
	Causes    map[schema.Address]state.ChangeCauses `json:"causes,omitempty"`
	Variables *state.Variables                      `json:"variables,omitempty"`
	// Overrides are the policies that were overridden for the plan.
	Overrides []state.Override `json:"overrides,omitempty"`
}

// ExplanationOf is that which a document has.
func ExplanationOf(doc *state.Document) *Explanation {
	e := &Explanation{Causes: map[schema.Address]state.ChangeCauses{}, Variables: doc.Variables}
	for addr, j := range doc.Jobs {
		if j.Causes != nil {
			e.Causes[addr] = *j.Causes
		}
	}
	for addr, r := range doc.Resources {
		if r.Causes != nil {
			e.Causes[addr] = *r.Causes
		}
	}
	for _, o := range doc.Overrides {
		if o.Revision == doc.Revision {
			e.Overrides = append(e.Overrides, o)
		}
	}
	return e
}

// Accept returns doc with the request taken in; doc is not changed. Nothing has
// happened yet: the next Step begins to carry it out. Whether it may be carried
// out, a plan for the result has (see [plan.BlockedChange]).
func Accept(doc *state.Document, req Request) *state.Document {
	if req.UnlaunchAll || len(req.Unlaunch) > 0 {
		doc = launch.Unlaunched(doc, func(a schema.Address) bool { return req.UnlaunchAll || named(req.Unlaunch, a) })
	}
	next := change.Accepted(doc, req.Desired)
	next.Revision++
	if next.Recorded = req.Recorded; req.KeepRecorded && len(next.Desired.Jobs) > 0 {
		next.Recorded = doc.Recorded
	}
	markRemoved(next, req.By)
	for addr, j := range next.Jobs {
		replace, stop := named(req.Replace, addr), named(req.Stop, addr)
		if !replace && !stop {
			continue
		}
		marked := *j
		marked.Replace = replace || j.Replace
		marked.Stop = stop || j.Stop
		next.Jobs[addr] = &marked
	}
	if len(req.Replace) > 0 {
		maps.Copy(next.Jobs, change.Triggering(next, func(a schema.Address) bool { return named(req.Replace, a) }))
	}
	if req.Explanation != nil {
		next.Variables = req.Explanation.Variables
		change.Explain(next, req.Explanation.Causes)
		next.Overrides = state.WithOverrides(next.Overrides, req.Explanation.Overrides, next.Revision)
	}
	return next
}

// markRemoved records who removed hosts of actors from the configuration: calls of these
// actors end with that.
func markRemoved(next *state.Document, by string) {
	if len(next.Jobs) == 0 {
		return
	}
	declared := make(map[schema.Address]*schema.Job, len(next.Desired.Jobs))
	for i := range next.Desired.Jobs {
		declared[next.Desired.Jobs[i].Addr] = &next.Desired.Jobs[i]
	}
	for addr, j := range next.Jobs {
		remover := ""
		if j.Launch == nil && losesActors(j.Spec, declared[addr]) {
			remover = cmp.Or(j.RemovedBy, by)
		}
		if remover != j.RemovedBy {
			marked := *j
			marked.RemovedBy = remover
			next.Jobs[addr] = &marked
		}
	}
}

// losesActors reports whether a job hosts an actor that its next spec does not have; nil: it goes.
func losesActors(job, next *schema.Job) bool {
	kept := next.ActorNames()
	return slices.ContainsFunc(job.ActorNames(), func(name string) bool { return !slices.Contains(kept, name) })
}

func named(by []schema.Address, addr schema.Address) bool {
	for _, a := range by {
		if a.Contains(addr) {
			return true
		}
	}
	return false
}

// Target returns base with only what the targets name, and what that depends
// on, taken over from desired; targets that desired no longer has are removed.
func Target(base, desired schema.Desired, targets []schema.Address) schema.Desired {
	in := Chosen(desired, targets)
	out := desired
	out.Namespaces = merge(base.Namespaces, desired.Namespaces, in, func(n schema.Namespace) schema.Address { return n.Addr })
	out.Reservations = merge(base.Reservations, desired.Reservations, in, func(r schema.Reservation) schema.Address { return r.Addr })
	out.Groups = merge(base.Groups, desired.Groups, in, func(g schema.JobGroup) schema.Address { return g.Addr })
	out.Jobs = merge(base.Jobs, desired.Jobs, in, func(j schema.Job) schema.Address { return j.Addr })
	out.Notifications = merge(base.Notifications, desired.Notifications, in, func(n schema.Notification) schema.Address { return n.Addr })
	return out
}

// Chosen reports what [Target] takes over.
func Chosen(desired schema.Desired, targets []schema.Address) func(schema.Address) bool {
	chosen := closure(desired, targets)
	return func(a schema.Address) bool { return chosen[a] || chosen[a.Base()] || named(targets, a) }
}

// closure is the targets with everything they stand in, draw from and depend on.
func closure(desired schema.Desired, targets []schema.Address) map[schema.Address]bool {
	chosen := map[schema.Address]bool{}
	for grown := true; grown; {
		grown = false
		add := func(a schema.Address) {
			if !chosen[a] {
				chosen[a], grown = true, true
			}
		}
		for i := range desired.Jobs {
			j := &desired.Jobs[i]
			if !named(targets, j.Addr) && !chosen[j.Addr] && !chosen[j.Addr.Base()] {
				continue
			}
			add(j.Addr)
			add(schema.ScopedAddress(schema.KindNamespace, j.Namespace))
			if j.Resources.Reservation != "" {
				add(schema.ScopedAddress(schema.KindReservation, j.Resources.Reservation))
			}
			if group := j.Addr.GroupAddress(); !group.IsZero() {
				add(group)
			}
			for _, on := range j.DependsOn {
				add(on)
			}
			for _, on := range j.Uses {
				add(on)
			}
		}
		for i := range desired.Reservations {
			addr := desired.Reservations[i].Addr
			if group := addr.GroupAddress(); !group.IsZero() && (named(targets, addr) || chosen[addr]) {
				add(group)
			}
		}
	}
	return chosen
}

// merge keeps base's items that are not in, and takes over desired's that are.
func merge[T any](base, desired []T, in func(schema.Address) bool, addr func(T) schema.Address) []T {
	var out []T
	b, d := 0, 0
	for b < len(base) || d < len(desired) {
		switch {
		case b == len(base) || d < len(desired) && addr(desired[d]).Compare(addr(base[b])) < 0:
			if in(addr(desired[d])) {
				out = append(out, desired[d])
			}
			d++
		case d == len(desired) || addr(base[b]).Compare(addr(desired[d])) < 0:
			if !in(addr(base[b])) {
				out = append(out, base[b])
			}
			b++
		default:
			if in(addr(base[b])) {
				out = append(out, desired[d])
			} else {
				out = append(out, base[b])
			}
			b++
			d++
		}
	}
	return out
}

// Without returns base without the targets, what is in them, and all
// objects that depend on those.
func Without(base schema.Desired, targets []schema.Address) schema.Desired {
	gone := map[schema.Address]bool{}
	removed := func(a schema.Address) bool { return gone[a] || gone[a.Base()] || named(targets, a) }
	for grown := true; grown; {
		grown = false
		for i := range base.Jobs {
			j := &base.Jobs[i]
			if !gone[j.Addr] && (removed(j.Addr) || needsAny(j, removed)) {
				gone[j.Addr], grown = true, true
			}
		}
	}
	out := base
	out.Namespaces = merge(base.Namespaces, nil, removed, func(n schema.Namespace) schema.Address { return n.Addr })
	out.Reservations = merge(base.Reservations, nil, removed, func(r schema.Reservation) schema.Address { return r.Addr })
	out.Groups = merge(base.Groups, nil, removed, func(g schema.JobGroup) schema.Address { return g.Addr })
	out.Jobs = merge(base.Jobs, nil, removed, func(j schema.Job) schema.Address { return j.Addr })
	out.Notifications = merge(base.Notifications, nil, removed, func(n schema.Notification) schema.Address { return n.Addr })
	return out
}

func needsAny(j *schema.Job, removed func(schema.Address) bool) bool {
	needs := append([]schema.Address{schema.ScopedAddress(schema.KindNamespace, j.Namespace)}, j.DependsOn...)
	needs = append(needs, j.Uses...)
	if j.Resources.Reservation != "" {
		needs = append(needs, schema.ScopedAddress(schema.KindReservation, j.Resources.Reservation))
	}
	return slices.ContainsFunc(needs, removed)
}
