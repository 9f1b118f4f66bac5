package plan

import (
	"fmt"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// ask asks for a slice that is not there, unless its last refusal is too
// recent. What a former slice of that name left in the mailbox is cleared away
// first: its reports would pass for those of the new hosts.
func (d *differ) ask(spec schema.SliceSpec) reason {
	name := spec.Name
	if !d.known(&spec) {
		return d.cannotAsk(&spec)
	}
	s := d.next.Slices[name]
	if s == nil || !s.Terminating.IsZero() || s.Seen || s.Spec != spec {
		s = d.putSlice(state.Slice{Spec: spec})
	}
	if d.isOverdue(s) {
		s = d.giveUp(s)
	}
	switch {
	case s.RetryAt.After(d.now):
		return reason{kind: d.refusedKind(s), text: fmt.Sprintf("slice %s: %s", name, s.Error), until: s.RetryAt}
	case s.AskedAt.IsZero() || s.Failed != "":
		if why := d.shut(&spec); !why.none() {
			return why
		}
		if s = d.askAgain(s); d.tried != nil {
			d.tried[stockPlace(&spec)]++
			d.tried[quotaPlace(&spec)]++
		}
	}
	switch {
	case s.AskedAt.IsZero() && d.hasMailbox(name):
		d.forget(name, spec.Owner)
		return underway("what is left of the old slice " + name + " is being cleared away")
	case s.AskedAt.IsZero():
		d.editSlice(name).AskedAt = d.now
	case len(d.obs.Hosts[name]) > 0:
		// It was there, or will be listed by the next look. If it is not, it
		// came and went unseen, and what its hosts said is about nothing.
		d.editSlice(name).Seen = true
		return underway("hosts of slice " + name + " have reported in; waiting for it to be listed")
	}
	d.act(Action{Verb: CreateSlice, Addr: spec.Owner, Slice: spec, AfterSave: d.isStaged(&spec)})
	if s.Failed != "" {
		return because(WaitRetry, fmt.Sprintf("slice %s: %s; trying again", name, s.Error))
	}
	return underway("slice " + name + " is being created")
}

// askAgain notes that a slice in a zone is tried once more: until that is answered
// it counts among those that try its place.
func (d *differ) askAgain(s *state.Slice) *state.Slice {
	if s.Failed == "" || s.Spec.Zone == "" {
		return s
	}
	e := d.editSlice(s.Spec.Name)
	e.Failed, e.Error, e.AskedAt = "", "", d.now
	return e
}

func (d *differ) cannotAsk(spec *schema.SliceSpec) reason {
	p := spec.Provider
	if why := d.obs.Inventories[p].Unlisted[spec.Zone]; why != "" {
		return because(WaitProvider, fmt.Sprintf("what is in %s could not be listed: %s", spec.Zone, why))
	}
	if why, unreachable := d.obs.Unreachable[p]; unreachable {
		return because(WaitProvider, fmt.Sprintf("provider %s cannot be asked for its slices: %s", p, why.Text))
	}
	if why := d.unconfirmed(spec); !why.none() {
		return why
	}
	return because(WaitProvider, fmt.Sprintf("provider %s was not asked for its slices", p))
}
