package amend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Blocks are the moved, removed and import blocks of a configuration that
// [Check] has found nothing wrong with.
type Blocks struct {
	Config *schema.Config
	// Wanted says which addresses are to be looked at, nil: all.
	Wanted func(schema.Address) bool
	At     time.Time
	By     string // who lets go of what is removed
}

// Relocate carries out what moved and removed blocks say and the state does not
// show yet: first the moves, then the releases. The document is the given
// one if that is nothing.
//
// A job that has got a count, or lost it, counts as moved to or from its first
// instance, unless a block says otherwise.
func (b *Blocks) Relocate(doc *state.Document) (*state.Document, []plan.Amendment, hcl.Diagnostics) {
	next, done, diags := b.move(doc)
	if diags.HasErrors() {
		return doc, nil, diags
	}
	next, forgotten, more := b.forget(next)
	diags = append(diags, more...)
	if diags.HasErrors() {
		return doc, nil, diags
	}
	return next, inAddressOrder(append(done, forgotten...)), diags
}

func (b *Blocks) wants(a schema.Address) bool { return b.Wanted == nil || b.Wanted(a) }

func inAddressOrder(done []plan.Amendment) []plan.Amendment {
	slices.SortStableFunc(done, func(x, y plan.Amendment) int {
		return cmp.Or(x.Addr.Compare(y.Addr), x.From.Compare(y.From))
	})
	return done
}

func (b *Blocks) move(doc *state.Document) (*state.Document, []plan.Amendment, hcl.Diagnostics) {
	implied := b.implied(doc)
	if len(b.Config.Moves)+len(implied) == 0 {
		return doc, nil, nil
	}
	r := newRelocation(doc)
	var diags hcl.Diagnostics
	var carriedOut []statement
	order, _ := inOrder(b.Config.Moves)
	for _, i := range order {
		m := &b.Config.Moves[i]
		s := newStatement(m.From, m.To)
		_, stays := r.carryOut(&s)
		carriedOut = append(carriedOut, s)
		if d := b.unresolved(m, stays); d != nil {
			diags = append(diags, d)
		}
	}
	for _, s := range implied {
		r.carryOut(&s)
	}
	items := b.narrow(r.result())
	if len(items) == 0 {
		return doc, nil, diags
	}
	next, err := relocated(doc, newNames(doc, items, carriedOut...))
	if err != nil {
		return doc, nil, append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Moves cannot be recorded", Detail: sentence(err)})
	}
	var done []plan.Amendment
	for from, to := range items {
		if r.isRecorded(from) {
			done = append(done, plan.Amendment{Verb: plan.AmendMove, Addr: to, From: from})
		}
	}
	return next, done, diags
}

// unresolved warns of what a move leaves where it is, nil if that is nothing.
func (b *Blocks) unresolved(m *schema.Move, stays []conflict) *hcl.Diagnostic {
	var pairs []string
	for _, c := range stays {
		if b.wants(c.place) || b.wants(c.target) {
			pairs = append(pairs, fmt.Sprintf("%s to %s", c.place, c.target))
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	return &hcl.Diagnostic{
		Severity: hcl.DiagWarning, Summary: "Unresolved move", Subject: &m.Range,
		Detail: fmt.Sprintf("Both addresses are in the state, so nothing was moved: %s. What is at the old address and declared no more is deleted. "+
			"If it is to stay, settle it with fray state mv or fray state rm first, and plan again.", strings.Join(pairs, ", ")),
	}
}

// narrow keeps to what is wanted. Jobs go with their group.
func (b *Blocks) narrow(items map[schema.Address]schema.Address) map[schema.Address]schema.Address {
	if b.Wanted == nil {
		return items
	}
	kept := map[schema.Address]schema.Address{}
	goes := func(from schema.Address) bool {
		to, moves := items[from]
		return moves && (b.Wanted(from) || b.Wanted(to))
	}
	for from, to := range items {
		if goes(from) || goes(from.GroupAddress()) {
			kept[from] = to
		}
	}
	return kept
}

// implied are the moves that a count makes without a block: of a job to its
// first instance, and back.
func (b *Blocks) implied(doc *state.Document) []statement {
	var moves []statement
	said := func(a schema.Address) bool {
		return slices.ContainsFunc(b.Config.Moves, func(m schema.Move) bool { return m.From.Base() == a.Base() || m.To.Base() == a.Base() })
	}
	for from := range doc.Jobs {
		to := from.Base()
		switch n, counted := from.Key.Int(); {
		case from.Key.IsZero():
			to.Key = schema.IntKey(0)
		case !counted || n > 0:
			continue
		}
		if b.declares(to) && !said(from) {
			moves = append(moves, statement{from: from, to: to})
		}
	}
	slices.SortFunc(moves, func(x, y statement) int { return x.from.Compare(y.from) })
	return moves
}

func (b *Blocks) declares(job schema.Address) bool {
	_, found := slices.BinarySearchFunc(b.Config.Desired.Jobs, job, func(j schema.Job, a schema.Address) int { return j.Addr.Compare(a) })
	return found
}

// forget lets go of what removed blocks name and do not want destroyed.
func (b *Blocks) forget(doc *state.Document) (next *state.Document, done []plan.Amendment, diags hcl.Diagnostics) {
	next = doc
	for i := range b.Config.Removals {
		r := &b.Config.Removals[i]
		if r.Destroy {
			continue
		}
		addrs := b.there(next, r.From)
		if len(addrs) == 0 {
			continue
		}
		after, removed, err := Remove(next, addrs, b.At, b.By)
		if err != nil {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Cannot be released from the state", Detail: sentence(err), Subject: &r.Range})
			continue
		}
		for _, addr := range append(removed.Jobs, removed.Resources...) {
			done = append(done, plan.Amendment{Verb: plan.AmendForget, Addr: addr, Slices: released(next, addr, removed.Slices)})
		}
		next = after
	}
	return next, done, diags
}

// there is what the state has of an address, as far as it is wanted.
func (b *Blocks) there(doc *state.Document, of schema.Address) []schema.Address {
	all := declared(&doc.Desired)
	for a := range doc.Jobs {
		all[a] = true
	}
	for a := range doc.Resources {
		all[a] = true
	}
	var found []schema.Address
	in := reach{of, isWhole(of)}
	for _, a := range sortedAddrs(all) {
		if (a == of || in.reaches(a)) && b.wants(a) {
			found = append(found, a)
		}
	}
	return found
}

// released are the slices that were an address's and are unmanaged now.
func released(before *state.Document, addr schema.Address, unmanaged []string) []string {
	return slices.DeleteFunc(slices.Clone(unmanaged), func(name string) bool {
		if j := before.Jobs[addr]; j != nil && slices.Contains(j.Slices, name) {
			return false
		}
		s := before.Slices[name]
		return s == nil || s.Spec.Owner != addr
	})
}
