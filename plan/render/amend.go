package render

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// Amended is a verb for what a closing line counts: "imported".
func Amended(v plan.AmendVerb) string {
	switch v {
	case plan.AmendImport:
		return "imported"
	case plan.AmendMove:
		return "moved"
	case plan.AmendForget:
	}
	return "let go"
}

// amendments writes what the files change in the state itself, but for what
// stands with a change of the same address.
func (p *printer) amendments(pl *plan.Plan) {
	p.eachAmendment(pl, p.noteAmended(pl), func(int) { p.print("\n") })
}

// noteAmended finds the amendments by their addresses, and is which of them have a change.
func (p *printer) noteAmended(pl *plan.Plan) map[schema.Address]bool {
	p.amended = map[schema.Address]*plan.Amendment{}
	for i := range pl.Amendments {
		p.amended[pl.Amendments[i].Addr] = &pl.Amendments[i]
	}
	changed := map[schema.Address]bool{}
	if len(pl.Amendments) == 0 {
		return changed
	}
	for i := range pl.Changes {
		c := &pl.Changes[i]
		changed[c.Addr] = c.Verb != plan.VerbNone && p.amended[c.Addr] != nil
	}
	return changed
}

// eachAmendment calls done after each amendment that does not stand with a change, with the
// number of those that it stands for.
func (p *printer) eachAmendment(pl *plan.Plan, changed map[schema.Address]bool, done func(count int)) {
	for i := 0; i < len(pl.Amendments); {
		a := &pl.Amendments[i]
		i++
		if changed[a.Addr] && a.Verb != plan.AmendForget {
			continue
		}
		p.amendment(a)
		n := 0
		for !p.verbose && i+n < len(pl.Amendments) && areAlike(a, &pl.Amendments[i+n]) && !changed[pl.Amendments[i+n].Addr] {
			n++
		}
		if n+1 < foldFrom {
			n = 0
		} else {
			first, last := &pl.Amendments[i], &pl.Amendments[i+n-1]
			p.commented(fmt.Sprintf("%s … %s (%d more) likewise", subject(first), subject(last), n), bold)
		}
		i += n
		done(1 + n)
	}
}

// subject is the address that a heading begins with.
func subject(a *plan.Amendment) schema.Address {
	if a.Verb == plan.AmendMove {
		return a.From
	}
	return a.Addr
}

// areAlike reports whether the same is done to two instances of one block, and
// neither gets another key by it.
func areAlike(a, b *plan.Amendment) bool {
	keeps := func(a *plan.Amendment) bool { return a.From.IsZero() || a.From.Key == a.Addr.Key }
	return a.Verb == b.Verb && !a.Addr.Key.IsZero() && a.Addr.Base() == b.Addr.Base() && a.From.Base() == b.From.Base() && keeps(a) && keeps(b)
}

func (p *printer) amendment(a *plan.Amendment) {
	switch a.Verb {
	case plan.AmendMove:
		p.commented(fmt.Sprintf("%s has moved to %s", a.From, a.Addr), bold)
	case plan.AmendImport:
		p.commented(fmt.Sprintf("%s will be imported", a.Addr), bold)
	case plan.AmendForget:
		text := fmt.Sprintf("%s will no longer be managed by fray", a.Addr)
		switch {
		case len(a.Slices) == 0:
		case a.Addr.Kind == schema.KindReservation:
			text += ", and keeps its slices"
		default:
			text += ", and runs on"
		}
		p.commented(text, bold)
	}
	if len(a.Slices) > 0 {
		p.commented("("+onSlices(a.Slices)+")", "")
	}
}

// amendedNote says in the block of a change what else happens to its address.
func (p *printer) amendedNote(addr schema.Address) {
	a := p.amended[addr]
	if a == nil {
		return
	}
	switch a.Verb {
	case plan.AmendMove:
		p.commented(fmt.Sprintf("(moved from %s)", a.From), "")
	case plan.AmendImport:
		p.commented(fmt.Sprintf("(imported: %s)", onSlices(a.Slices)), "")
	case plan.AmendForget:
	}
}

// sameAmendment reports whether two changes may stand for each other as far as
// the amendments of their addresses go.
func (p *printer) sameAmendment(a, b schema.Address) bool {
	x, y := p.amended[a], p.amended[b]
	return x == nil && y == nil || x != nil && y != nil && areAlike(x, y)
}

func onSlices(names []string) string {
	if len(names) == 1 {
		return "slice " + names[0]
	}
	return "slices " + strings.Join(names, ", ")
}

// amendCounts are counts before and after those of changes: "1 to import, " and
// ", 2 to forget".
func amendCounts(pl *plan.Plan) (before, after string) {
	counts := pl.Amended()
	for _, v := range plan.AmendVerbs() {
		n := counts[v]
		switch {
		case n == 0:
		case v == plan.AmendForget:
			after = ", " + strconv.Itoa(n) + " to " + string(v)
		default:
			before += strconv.Itoa(n) + " to " + string(v) + ", "
		}
	}
	return before, after
}
