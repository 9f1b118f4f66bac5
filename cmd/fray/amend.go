package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/state"
)

// amender changes a state as the moved, removed and import blocks of the files
// say, before anything is compared with it.
type amender struct {
	app    *app
	l      *loaded
	blocks amend.Blocks
	// expected is what a saved plan says of it, nil where there is none.
	expected func([]plan.Amendment) error
	warned   bool
	intakes  []intake // what import blocks name that is not fray's, or was not
}

// amender is what the files and a change's targets ask of the state.
func (l *loaded) amender(a *app, c *change) *amender {
	m := &amender{app: a, l: l, blocks: amend.Blocks{Config: l.cfg, At: time.Now().UTC(), By: userAtHost()}}
	if len(c.targets) > 0 {
		m.blocks.Wanted = apply.Chosen(l.cfg.Desired, c.targets)
	}
	return m
}

// amend returns doc as the blocks change it, doc itself where they do not, and
// what they have changed. Nothing is written.
func (m *amender) amend(ctx context.Context, doc *state.Document) (*state.Document, []plan.Amendment, error) {
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
	if err := m.app.diagnostics(m.l.src.Files(), diags); err != nil {
		return nil, nil, err
	}
	if m.expected != nil {
		if err := m.expected(done); err != nil {
			return nil, nil, err
		}
	}
	return next, done, nil
}

// imported carries out the import blocks. What they name by ids counts as marked.
func (m *amender) imported(ctx context.Context, doc *state.Document) (*state.Document, []plan.Amendment, hcl.Diagnostics, error) {
	blocks, in, diags := m.lookUp(ctx, doc)
	if diags.HasErrors() {
		return doc, nil, diags, nil
	}
	obs, err := m.l.observe(ctx, doc.Stack())
	if err != nil {
		return nil, nil, nil, err
	}
	asMarked(in, obs)
	m.intakes = in
	next, taken, diags := blocks.TakeOver(doc, &m.l.desired, obs)
	return next, taken, diags, nil
}

// handed is what of the blocks a controller may do in our place: all but what looks
// at the world, and what is narrowed to targets. It reports false for the rest.
func (m *amender) handed(ctx context.Context, doc *state.Document) (next *state.Document, done []plan.Amendment, ok bool, err error) {
	if m == nil {
		return doc, nil, true, nil
	}
	if next, done, err = m.amend(ctx, doc); err != nil {
		return nil, nil, false, err
	}
	imports := func(a plan.Amendment) bool { return a.Verb == plan.AmendImport }
	return next, done, len(done) == 0 || m.blocks.Wanted == nil && !slices.ContainsFunc(done, imports), nil
}

// moved is the state with what the files say has moved, for the values that
// they read of it under the new names.
func (l *loaded) moved(doc *state.Document) *state.Document {
	blocks := amend.Blocks{Config: l.cfg}
	next, _, diags := blocks.Relocate(doc)
	if diags.HasErrors() {
		return doc // told when it is planned
	}
	return next
}

// sameAmendments is nil if what is to be done to the state is what was approved.
func sameAmendments(got, want []plan.Amendment) error {
	same := slices.EqualFunc(got, want, func(x, y plan.Amendment) bool {
		return x.Verb == y.Verb && x.Addr == y.Addr && x.From == y.From && slices.Equal(x.Slices, y.Slices)
	})
	if !same {
		return errors.New("what is moved, imported or let go of is something else by now")
	}
	return nil
}

// amendedWords are the counts of a plan's amendments for a closing line, those
// that there are: "1 imported, 2 moved, ".
func amendedWords(p *plan.Plan) string {
	var words strings.Builder
	counts := p.Amended()
	for _, v := range plan.AmendVerbs() {
		if n := counts[v]; n > 0 {
			fmt.Fprintf(&words, "%d %s, ", n, render.Amended(v))
		}
	}
	return words.String()
}

// actionCounts are the numbers of a plan's changes and amendments by verb.
func actionCounts(p *plan.Plan) map[string]int {
	counts := map[string]int{}
	for v, n := range p.Counts() {
		counts[string(v)] = n
	}
	for v, n := range p.Amended() {
		counts[string(v)] = n
	}
	return counts
}
