package amend

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/schema"
)

// Check finds what is wrong with the moved, removed and import blocks of a
// configuration, whatever the state is.
func Check(cfg *schema.Config) hcl.Diagnostics {
	if len(cfg.Moves)+len(cfg.Removals)+len(cfg.Imports) == 0 {
		return nil
	}
	c := &checker{cfg: cfg, declared: map[reach]schema.Address{}}
	for a := range declared(&cfg.Desired) {
		for _, in := range around(a) {
			if first, known := c.declared[in]; !known || a.Compare(first) < 0 {
				c.declared[in] = a
			}
		}
	}
	c.moves()
	c.removals()
	c.imports()
	return c.diags
}

type checker struct {
	cfg      *schema.Config
	declared map[reach]schema.Address // the first declaration in it
	diags    hcl.Diagnostics
}

func (c *checker) errorAt(rng hcl.Range, summary, format string, args ...any) {
	c.diags = append(c.diags, &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: &rng,
	})
}

// place is a range in words, for a diagnostic that names a second one.
func place(rng hcl.Range) string { return fmt.Sprintf("%s line %d", rng.Filename, rng.Start.Line) }

// sentence is an error as a diagnostic's detail.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// declaredAt says where something is declared, "" if that is not known.
func (c *checker) declaredAt(a schema.Address) string {
	for _, key := range []schema.Address{a, a.Base()} {
		if rng, ok := c.cfg.Ranges[key.String()]; ok {
			return " (" + place(rng) + ")"
		}
	}
	return ""
}

func (c *checker) moves() {
	from, to := map[schema.Address]*schema.Move{}, map[schema.Address]*schema.Move{}
	for i := range c.cfg.Moves {
		c.move(&c.cfg.Moves[i], from, to)
	}
	moves := c.cfg.Moves
	_, cycles := inOrder(moves)
	for _, cycle := range cycles {
		var steps []string
		for _, i := range cycle {
			steps = append(steps, fmt.Sprintf("%s to %s (%s)", moves[i].From, moves[i].To, place(moves[i].Range)))
		}
		c.errorAt(moves[cycle[0]].Range, "Moves in a circle",
			"These moves lead back to where they begin, so that it cannot be told where anything is to end up: %s. Remove one of them.",
			strings.Join(steps, ", "))
	}
}

func (c *checker) move(m *schema.Move, from, to map[schema.Address]*schema.Move) {
	if err := checkKinds(m.From, m.To); err != nil {
		c.errorAt(m.Range, "Impossible move", "%s cannot be moved to %s: %s.", m.From, m.To, err)
		return
	}
	s := newStatement(m.From, m.To)
	if there, ok := c.declared[s.origin()]; ok {
		c.errorAt(m.Range, "Moved and still declared",
			"%s has moved to %s, says this block, but %s is still declared%s. Declare it as %s instead, or remove the moved block.",
			m.From, m.To, there, c.declaredAt(there), m.To)
	}
	const both = "%s moves to %s, says this block, and %s says that %s moves to %s. Only one of them can be true: remove the other."
	if other := from[m.From]; other != nil && other.To != m.To {
		c.errorAt(m.Range, "Moves in conflict", both, m.From, m.To, place(other.Range), other.From, other.To)
	}
	if other := to[m.To]; other != nil && other.From != m.From {
		c.errorAt(m.Range, "Moves in conflict", both, m.From, m.To, place(other.Range), other.From, other.To)
	}
	from[m.From], to[m.To] = m, m
}

func (c *checker) removals() {
	all := map[reach]*schema.Removal{}
	for i := range c.cfg.Removals {
		r := &c.cfg.Removals[i]
		all[reach{r.From, isWhole(r.From)}] = r
	}
	for i := range c.cfg.Removals {
		r := &c.cfg.Removals[i]
		if there, ok := c.declared[reach{r.From, isWhole(r.From)}]; ok {
			c.errorAt(r.Range, "Removed and still declared",
				"%s is removed, says this block, but %s is still declared%s. Remove that declaration, or the removed block.",
				r.From, there, c.declaredAt(there))
		}
		for _, in := range around(r.From) {
			if other := all[in]; other != nil && other.Destroy != r.Destroy {
				c.errorAt(r.Range, "Removed in two ways",
					"Of %s, this block and the one in %s say otherwise whether it is to be destroyed. Remove one of them.",
					r.From, place(other.Range))
			}
		}
	}
}

func (c *checker) imports() {
	to := map[schema.Address]*schema.Import{}
	ids := map[schema.Kind]map[string]*schema.Import{schema.KindReservation: {}, schema.KindJob: {}}
	for i := range c.cfg.Imports {
		im := &c.cfg.Imports[i]
		c.target(im)
		if other := to[im.To]; other != nil {
			c.errorAt(im.Range, "Imported twice", "%s is also what %s imports to. Name all of its slices in one block: id = \"SLICE,SLICE\".", im.To, place(other.Range))
		}
		to[im.To] = im
		if len(slicesOf(im)) == 0 {
			c.errorAt(im.Range, "Cannot be imported", "The id names no slice. Write the names of those that %s is to have, as fray status shows them: id = \"SLICE,SLICE\".", im.To)
		}
		holder := schema.KindJob // a slice of a reservation may have both
		if im.To.Kind == schema.KindReservation {
			holder = schema.KindReservation
		}
		for _, name := range slicesOf(im) {
			if other := ids[holder][name]; other != nil {
				c.errorAt(im.Range, "Imported twice", "Slice %s is also named in %s. It can be given to one address only.", name, place(other.Range))
			}
			ids[holder][name] = im
		}
	}
}

// target refuses what slices cannot be given to.
func (c *checker) target(im *schema.Import) {
	there, ok := c.declared[reach{im.To, true}]
	switch {
	case im.To.IsModule() || im.To.Kind == schema.KindNamespace || im.To.Kind == schema.KindJobGroup || im.To.Kind == schema.KindNotification:
		c.errorAt(im.Range, "Cannot be imported", "Slices cannot be given to %s. Name a job, a replica of an actor_service, or a reservation.", im.To)
	case ok && there != im.To:
		c.errorAt(im.Range, "Cannot be imported", "%s has instances, and slices are one instance's. Name one, such as %s.", im.To, there)
	case !ok:
		var names []string
		for _, a := range sortedAddrs(declared(&c.cfg.Desired)) {
			names = append(names, a.String())
		}
		hint := ""
		if near := schema.Nearest(im.To.String(), names); near != "" {
			hint = " Did you mean " + near + "?"
		}
		c.errorAt(im.Range, "Cannot be imported", "%s is not declared. Write it down first, with the shape that the slices have.%s", im.To, hint)
	}
}

// slicesOf are the slices that an import names.
func slicesOf(im *schema.Import) []string {
	var names []string
	for name := range strings.SplitSeq(im.ID, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}
