package reconcile

import (
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/schedule"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Refresh returns a plan that records what was observed and changes nothing else: its
// Drift is what of doc is otherwise than recorded, its Next is doc with that. It has no
// actions. Only what is within is looked at, everything where that is nil.
func Refresh(doc *state.Document, obs *plan.Observed, now time.Time, within func(schema.Address) bool) *plan.Plan {
	carriedOut := recorded(doc)
	observed := snapshot.Take(snapshot.Input{Desired: launch.Wanted(&carriedOut, doc, now), Doc: doc, Obs: obs, Now: now})
	concluded := lifecycle.Conclude(observed)
	d := New(schedule.Decisions{Conclusion: concluded})
	d.Stamp()
	p := &plan.Plan{Mode: plan.ModeRefreshOnly, Doubts: d.Plan.Doubts, Next: learnt(doc, d, within)}
	for _, c := range d.Plan.Changes {
		p.Changes = append(p.Changes, plan.Change{Addr: c.Addr, Verb: plan.VerbNone})
	}
	slices.SortStableFunc(p.Changes, func(a, b plan.Change) int { return a.Addr.Compare(b.Addr) })
	p.Drift = found(doc, d.Plan.Drift, p.Next, now, within)
	if len(p.Drift) == 0 {
		p.Next = doc
	}
	return p
}

// recorded is what a document records as carried out, as something that is desired:
// of that nothing is to be changed.
func recorded(doc *state.Document) schema.Desired {
	out := doc.Desired
	out.Namespaces, out.Reservations, out.Groups, out.Jobs, out.Notifications = nil, nil, nil, nil, nil
	for _, addr := range slices.SortedFunc(maps.Keys(doc.Resources), schema.Address.Compare) {
		switch r := doc.Resources[addr]; {
		case r.Launch != nil:
		case r.Namespace != nil:
			out.Namespaces = append(out.Namespaces, *r.Namespace)
		case r.Reservation != nil:
			out.Reservations = append(out.Reservations, *r.Reservation)
		case r.Group != nil:
			out.Groups = append(out.Groups, *r.Group)
		case r.Notification != nil:
			out.Notifications = append(out.Notifications, *r.Notification)
		}
	}
	for _, addr := range slices.SortedFunc(maps.Keys(doc.Jobs), schema.Address.Compare) {
		if j := doc.Jobs[addr]; j.Launch == nil {
			out.Jobs = append(out.Jobs, *j.Spec)
		}
	}
	return out
}

// learnt is doc with what was observed of jobs and slices, without what would be decided
// about them: which slices are to be made and which to be deleted.
func learnt(doc *state.Document, d *Reconciler, within func(schema.Address) bool) *state.Document {
	next := doc.Clone()
	for addr, j := range d.Next.Jobs {
		if doc.Jobs[addr] != nil && covers(within, addr) {
			next.Jobs[addr] = j
		}
	}
	for name, s := range d.Next.Slices {
		was := doc.Slices[name]
		switch {
		case !covers(within, s.Spec.Owner):
		case was == nil && d.isToBeMade(name):
		case was != nil && was.Terminating.IsZero() && !s.Terminating.IsZero() && d.Listed[name] != nil:
		default:
			next.Slices[name] = s
		}
	}
	for name, s := range doc.Slices {
		if d.Next.Slices[name] == nil && covers(within, s.Spec.Owner) {
			delete(next.Slices, name)
		}
	}
	return next
}

func covers(within func(schema.Address) bool, addr schema.Address) bool {
	return within == nil || within(addr)
}

// isToBeMade reports whether a slice is not there yet.
func (d *Reconciler) isToBeMade(name string) bool {
	i, acted := d.Acting[name]
	return acted && d.Plan.Actions[i].Verb == plan.CreateSlice
}

// lasting is what still differs from what was asked for, although the state records it.
func lasting(doc *state.Document, within func(schema.Address) bool) []plan.Drift {
	var all []plan.Drift
	for _, name := range slices.Sorted(maps.Keys(doc.Slices)) {
		if s := doc.Slices[name]; len(s.Edited) > 0 && s.Terminating.IsZero() && covers(within, s.Spec.Owner) {
			all = append(all, lifecycle.EditedDrift(s.Spec.Owner, name, s.Edited))
		}
	}
	if within == nil {
		all = append(all, planchange.SkippedDrift(doc)...)
	}
	return all
}

// found is what differs between two documents: what changed by itself, and whatever else
// happened to an address about which that says nothing.
func found(doc *state.Document, drift []plan.Drift, next *state.Document, now time.Time, within func(schema.Address) bool) []plan.Drift {
	var all []plan.Drift
	named := map[schema.Address]bool{}
	add := func(d plan.Drift) {
		same := func(other plan.Drift) bool { return other.Addr == d.Addr && other.Found == d.Found } // of a slice, and of its attempt
		if d.Then = "will be recorded"; !slices.ContainsFunc(all, same) {
			all = append(all, d)
		}
	}
	for _, each := range drift {
		if covers(within, each.Addr) {
			named[each.Addr] = true
			add(each)
		}
	}
	for _, e := range planchange.Events(doc, &plan.Plan{Next: next}, now) {
		if !e.Addr.IsZero() && !named[e.Addr] {
			named[e.Addr] = e.Slice == "" // the first says why, and what follows for the job is no news
			add(plan.Drift{Kind: plan.DriftRecord, Addr: e.Addr, Slice: e.Slice, Found: e.Text})
		}
	}
	for _, d := range lasting(next, within) {
		if !slices.ContainsFunc(all, func(other plan.Drift) bool { return other.Slice == d.Slice && other.Found == d.Found }) {
			all = append(all, d)
		}
	}
	slices.SortStableFunc(all, func(a, b plan.Drift) int { return a.Addr.Compare(b.Addr) })
	return all
}
