package amend

import (
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// names are where addresses, and what refers to them, go.
type names struct {
	items map[schema.Address]schema.Address // of what the document has
	// bases are references to all instances of a block, which have all gone to
	// one other, or stay with one whose keys are others now.
	bases map[schema.Address]schema.Address
	// within are the statements that moved modules, in their order: a module is
	// no item, but may be referred to.
	within []statement
}

func newNames(doc *state.Document, items map[schema.Address]schema.Address, statements ...statement) *names {
	n := &names{items: items, bases: basesOf(doc, items)}
	for i := range statements {
		if statements[i].from.IsModule() {
			n.within = append(n.within, statements[i])
		}
	}
	return n
}

func basesOf(doc *state.Document, items map[schema.Address]schema.Address) map[schema.Address]schema.Address {
	bases := map[schema.Address]schema.Address{}
	for from, to := range items {
		bases[from.Base()] = to.Base()
	}
	check := func(a schema.Address) {
		if base, moves := bases[a.Base()]; moves && final(items, a).Base() != base {
			delete(bases, a.Base()) // they part
		}
	}
	for a := range doc.Jobs {
		check(a)
	}
	for i := range doc.Desired.Jobs {
		check(doc.Desired.Jobs[i].Addr)
	}
	return bases
}

func final(items map[schema.Address]schema.Address, a schema.Address) schema.Address {
	if to, moves := items[a]; moves {
		return to
	}
	return a
}

// rename returns where something goes, and whether it does.
func (n *names) rename(a schema.Address) (schema.Address, bool) {
	to, moves := n.items[a]
	if !moves {
		return a, false
	}
	return to, true
}

// reference is what refers to something by its address, after the move.
func (n *names) reference(a schema.Address) schema.Address {
	if base, moves := n.bases[a]; moves {
		return base
	}
	if to, moves := n.items[a]; moves {
		return to
	}
	if a.IsModule() {
		for i := range n.within {
			a, _ = n.within[i].rename(a)
		}
	}
	return a
}

// references are those of a list, and whether any is another one.
func (n *names) references(addrs []schema.Address) ([]schema.Address, bool) {
	var out []schema.Address
	for i, a := range addrs {
		if to := n.reference(a); to != a {
			if out == nil {
				out = slices.Clone(addrs)
			}
			out[i] = to
		}
	}
	if out == nil {
		return addrs, false
	}
	slices.SortFunc(out, schema.Address.Compare)
	return slices.Compact(out), true
}

// namespace is a namespace's scoped name after the move.
func (n *names) namespace(scoped string) string { return n.scoped(schema.KindNamespace, scoped) }

// reservation is a reservation's scoped name after the move, "" for "".
func (n *names) reservation(scoped string) string { return n.scoped(schema.KindReservation, scoped) }

func (n *names) scoped(kind schema.Kind, scoped string) string {
	if to, moves := n.items[schema.ScopedAddress(kind, scoped)]; moves {
		return to.Scoped()
	}
	return scoped
}
