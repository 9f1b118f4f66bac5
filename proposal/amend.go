package proposal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// Amender changes a state as the moved, removed and import blocks of the files
// declare, before anything is compared with it.
type Amender struct {
	terminal *terminal.Terminal
	loaded   *configuration.Loaded
	blocks   amend.Blocks
	// expected is what a saved plan has of it, nil where there is none.
	Expected func([]plan.Amendment) error
	warned   bool
	intakes  []Found // what import blocks name that is not fray's, or was not
}

// NewAmender is what the files and a change's targets ask of the state.
func NewAmender(l *configuration.Loaded, a *terminal.Terminal, c *Change) *Amender {
	m := &Amender{terminal: a, loaded: l, blocks: amend.Blocks{Config: l.Config, At: time.Now().UTC(), By: stack.UserAtHost()}}
	if len(c.Targets) > 0 {
		m.blocks.Wanted = apply.Chosen(l.Config.Desired, c.Targets)
	}
	return m
}

// Amend returns doc as the blocks change it, doc itself where they do not, and
// what they have changed. Nothing is written.
func (m *Amender) Amend(ctx context.Context, doc *state.Document) (*state.Document, []plan.Amendment, error) {
	if m == nil {
		return doc, nil, nil
	}
	next, done, diags := m.blocks.Relocate(doc)
	if !diags.HasErrors() && len(m.blocks.Imports(next)) > 0 {
		var taken []plan.Amendment
		var more hcl.Diagnostics
		var err error
		if next, taken, more, err = m.imported(ctx, next); err != nil {
			return nil, nil, err
		}
		done, diags = append(done, taken...), append(diags, more...)
	}
	if m.warned {
		diags = slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool { return d.Severity == hcl.DiagWarning })
	}
	m.warned = true
	if err := m.terminal.Diagnostics(m.loaded.Source.Files(), diags); err != nil {
		return nil, nil, err
	}
	if m.Expected != nil {
		if err := m.Expected(done); err != nil {
			return nil, nil, err
		}
	}
	return next, done, nil
}

// imported carries out the import blocks. What they name by ids counts as marked.
func (m *Amender) imported(ctx context.Context, doc *state.Document) (*state.Document, []plan.Amendment, hcl.Diagnostics, error) {
	blocks, in, diags := m.resolve(ctx, doc)
	if diags.HasErrors() {
		return doc, nil, diags, nil
	}
	obs, err := m.loaded.Observe(ctx, doc.Stack())
	if err != nil {
		return nil, nil, nil, err
	}
	asMarked(in, obs)
	m.intakes = in
	next, taken, diags := blocks.TakeOver(doc, &m.loaded.Desired, obs)
	return next, taken, diags, nil
}

// ForController is what of the blocks a controller may do in our place: all but what looks
// at the world, and what is narrowed to targets. It reports false for the rest.
func (m *Amender) ForController(ctx context.Context, doc *state.Document) (next *state.Document, done []plan.Amendment, ok bool, err error) {
	if m == nil {
		return doc, nil, true, nil
	}
	if next, done, err = m.Amend(ctx, doc); err != nil {
		return nil, nil, false, err
	}
	imports := func(a plan.Amendment) bool { return a.Verb == plan.AmendImport }
	return next, done, len(done) == 0 || m.blocks.Wanted == nil && !slices.ContainsFunc(done, imports), nil
}

// SameAmendments is nil if what is to be done to the state is what was approved.
func SameAmendments(got, want []plan.Amendment) error {
	same := slices.EqualFunc(got, want, func(x, y plan.Amendment) bool {
		return x.Verb == y.Verb && x.Addr == y.Addr && x.From == y.From && slices.Equal(x.Slices, y.Slices)
	})
	if !same {
		return errors.New("what is moved, imported or released has changed since")
	}
	return nil
}

// AmendmentCounts are the counts of a plan's amendments for a closing line, those
// that there are: "1 imported, 2 moved, ".
func AmendmentCounts(p *plan.Plan) string {
	var text strings.Builder
	counts := p.Amended()
	for _, v := range plan.AmendVerbs() {
		if n := counts[v]; n > 0 {
			fmt.Fprintf(&text, "%d %s, ", n, render.Amended(v))
		}
	}
	return text.String()
}

// ActionCounts are the numbers of a plan's changes and amendments by verb.
func ActionCounts(p *plan.Plan) map[string]int {
	counts := map[string]int{}
	for v, n := range p.Counts() {
		counts[string(v)] = n
	}
	for v, n := range p.Amended() {
		counts[string(v)] = n
	}
	return counts
}
