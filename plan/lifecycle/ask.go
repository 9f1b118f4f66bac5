package lifecycle

import (
	"fmt"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// ask asks for a slice that is not there, unless its last rejection is too
// recent. What a former slice of that name left in the mailbox is cleared away
// first: its reports would pass for those of the new hosts.
func (d *Slices) ask(spec schema.SliceSpec) plan.Reason {
	name := spec.Name
	if !d.Known(&spec) {
		return d.CannotAsk(&spec)
	}
	s := d.Next.Slices[name]
	if s == nil || !s.Terminating.IsZero() || s.Listed || s.Spec != spec {
		s = d.PutSlice(state.Slice{Spec: spec})
	}
	if d.IsOverdue(s) {
		s = d.GiveUp(s)
	}
	switch {
	case s.RetryAt.After(d.Now):
		return plan.Reason{Kind: d.RejectionKind(s), Text: fmt.Sprintf("slice %s: %s", name, s.Error) + capacity.Staying(d.Pools, spec.Owner), Until: s.RetryAt}
	case s.PendingSince.IsZero() || s.Failed != "":
		if why := d.Shut(&spec); !why.None() {
			why.Text += capacity.Staying(d.Pools, spec.Owner)
			return why
		}
		if s = d.askAgain(s); d.Tried != nil {
			d.Tried[plan.StockPlace(&spec)]++
			d.Tried[capacity.QuotaPlace(&spec)]++
		}
	}
	switch {
	case s.PendingSince.IsZero() && d.hasMailbox(name):
		d.Forget(name, spec.Owner)
		return plan.Underway("what is left of the old slice " + name + " is being cleared away")
	case s.PendingSince.IsZero():
		d.EditSlice(name).PendingSince = d.Now
	case len(d.Obs.Hosts[name]) > 0:
		// It was there, or will be listed by the next look. If it is not, it
		// came and went unseen, and what its hosts said is about nothing.
		d.EditSlice(name).Listed = true
		return plan.Underway("hosts of slice " + name + " have reported in; waiting for it to be listed")
	}
	d.Act(plan.Action{Verb: plan.CreateSlice, Addr: spec.Owner, Slice: &s.Spec, AfterSave: d.isStaged(&spec)})
	if s.Failed != "" {
		return plan.Because(plan.WaitRetry, fmt.Sprintf("slice %s: %s; trying again", name, s.Error))
	}
	return plan.Underway("slice " + name + " is being created")
}

// askAgain notes that a slice in a zone is tried once more: until that is answered
// it counts among those that try its place.
func (d *Slices) askAgain(s *state.Slice) *state.Slice {
	if s.Failed == "" || s.Spec.Zone == "" {
		return s
	}
	e := d.EditSlice(s.Spec.Name)
	e.Failed, e.Error, e.PendingSince = "", "", d.Now
	return e
}
