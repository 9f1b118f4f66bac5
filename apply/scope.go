package apply

import (
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Scope bounds what steps may do: an approved plan may be retried and repaired
// where it names something, and nothing else may be touched, but for slices of
// jobs that have ended where Ended says so. The zero Scope allows nothing.
type Scope struct {
	All    bool // `fray watch`: everything desired
	Ended  bool // jobs that have ended lose their slices, named or not: nothing runs there
	Addrs  map[schema.Address]bool
	Slices map[string]bool // by name, for those that no address stands for
}

// ScopeOf is what a plan names: changed, drifted or waiting addresses, and
// every slice that it would touch.
func ScopeOf(p *plan.Plan) Scope {
	return ScopeWithin(p, func(schema.Address) bool { return true })
}

// ScopeWithin is ScopeOf for some addresses only: nothing else is touched, and
// nothing else is waited for.
func ScopeWithin(p *plan.Plan, within func(schema.Address) bool) Scope {
	s := Scope{Addrs: map[schema.Address]bool{}, Slices: map[string]bool{}}
	for _, c := range p.Changes {
		if c.Verb != plan.VerbNone && within(c.Addr) {
			s.Addrs[c.Addr] = true
		}
	}
	for _, d := range p.Drift {
		if !within(d.Addr) {
			continue
		}
		s.Addrs[d.Addr] = true
		if d.Slice != "" {
			s.Slices[d.Slice] = true
		}
	}
	for _, w := range p.Pending {
		if within(w.Addr) {
			s.Addrs[w.Addr] = true
		}
	}
	s.addReservations(p)
	for _, a := range p.Actions {
		if !within(a.Addr) {
			continue
		}
		s.Slices[a.Slice.Name] = true
		if !a.Addr.IsZero() {
			s.Addrs[a.Addr] = true
		}
	}
	return s
}

// addReservations covers those that jobs in scope draw from: they may have to grow.
func (s Scope) addReservations(p *plan.Plan) {
	if p.Next == nil {
		return
	}
	for addr, j := range p.Next.Jobs {
		if name := j.Spec.Resources.Reservation; name != "" && s.Addrs[addr] {
			s.Addrs[schema.ScopedAddress(schema.KindReservation, name)] = true
		}
	}
}

// Names reports whether the scope covers an address.
func (s Scope) Names(addr schema.Address) bool { return s.All || s.Addrs[addr] }

// clears reports whether a job has ended, and all that is left to do is that its slices go.
func (s Scope) clears(p *plan.Plan, addr schema.Address) bool {
	if !s.Ended || p.Next == nil {
		return false
	}
	j := p.Next.Jobs[addr]
	return j != nil && j.Status.Ended()
}

// allows lets mailboxes of slices that are gone be removed in any scope: that
// ends nothing.
func (s Scope) allows(a plan.Action) bool {
	return s.All || a.Verb == plan.ForgetSlice || s.Slices[a.Slice.Name] || !a.Addr.IsZero() && s.Addrs[a.Addr]
}

// filter are the plan's actions that the scope allows, and those beyond it.
func (s Scope) filter(p *plan.Plan) (kept, beyond []plan.Action) {
	if s.All {
		return p.Actions, nil
	}
	kept = p.Actions[:0]
	for _, a := range p.Actions {
		if s.allows(a) || a.Verb == plan.DeleteSlice && s.clears(p, a.Addr) {
			kept = append(kept, a)
		} else {
			beyond = append(beyond, a)
		}
	}
	return kept, beyond
}

// Leaving are the slices that the scope covers, are recorded as going and are not
// gone yet, by name. A plan may have nothing to do for one: its deletion is under way,
// or its absence is not confirmed yet.
func (s Scope) Leaving(p *plan.Plan) []*state.Slice {
	if p.Next == nil {
		return nil
	}
	var leaving []*state.Slice
	for _, going := range p.Next.Slices {
		if !going.Terminating.IsZero() && s.holds(p, &going.Spec) {
			leaving = append(leaving, going)
		}
	}
	slices.SortFunc(leaving, func(a, b *state.Slice) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
	return leaving
}

// Doubts are the slices that the scope covers, of which it is not known yet whether
// what their provider's list says against them is true.
func (s Scope) Doubts(p *plan.Plan) []plan.Doubt {
	var open []plan.Doubt
	for i := range p.Doubts {
		if d := p.Doubts[i]; d.Open && s.holds(p, &d.Slice) {
			open = append(open, d)
		}
	}
	return open
}

// holds reports whether the scope covers a slice.
func (s Scope) holds(p *plan.Plan, spec *schema.SliceSpec) bool {
	return s.Names(spec.Owner) || s.Slices[spec.Name] || s.clears(p, spec.Owner)
}

// Pending is the part of a plan's pending list that the scope covers.
func (s Scope) Pending(p *plan.Plan) []plan.Pending {
	var within []plan.Pending
	for _, w := range p.Pending {
		if s.Names(w.Addr) || s.clears(p, w.Addr) {
			within = append(within, w)
		}
	}
	return within
}
