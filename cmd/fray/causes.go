package main

import (
	"context"
	"slices"
	"sync"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// accept is what a change makes of a document, with the causes of what it changes.
func (l *loaded) accept(ctx context.Context, c *change, doc *state.Document) *state.Document {
	next := apply.Accept(doc, c.request(doc))
	if !l.explains(c) {
		return next
	}
	e := l.explanation(ctx, next, c.targets)
	next.Variables = e.Variables
	plan.Explain(next, e.Causes)
	return next
}

// explains reports whether what a change desires comes of the files.
func (l *loaded) explains(c *change) bool { return l.cfg != nil && !c.keeps }

// explanation is why what a document desires differs from what was carried out. Its
// Variables are still those of the last apply.
func (l *loaded) explanation(ctx context.Context, next *state.Document, targets []schema.Address) *apply.Explanation {
	now, err := state.DigestVariables(l.cfg.Variables, l.sealer)
	if err != nil { // without the key nothing is known of them; what needs it reports so
		now = nil
	}
	changed := now.Changed(next.Variables)
	e := &apply.Explanation{Causes: plan.Causes(next, plan.Sources{
		Variables: l.reader(changed),
		Files:     func(before, after string) []plan.FileChange { return l.projectChanges(ctx, before, after) },
	})}
	switch {
	case len(targets) == 0 || now == nil:
		e.Variables = now
	case next.Variables != nil && next.Variables.Key == now.Key:
		// Of what is left out it will not be known whether it had the values of before.
		e.Variables = next.Variables.Without(changed)
	}
	return e
}

// reader returns which of some variables an attribute reads; nil where there are none.
// The references of the files are followed once, when that is first asked for.
func (l *loaded) reader(changed []string) func(schema.Address, string) []string {
	if len(changed) == 0 {
		return nil
	}
	reads := sync.OnceValue(l.src.Reads)
	type attribute struct {
		addr schema.Address
		path string
	}
	known := map[attribute][]string{} // instances of a block read the same
	return func(addr schema.Address, path string) []string {
		at := attribute{addr.Base(), path}
		names, ok := known[at]
		if !ok {
			names = reads().Changed(addr, path, changed)
			known[at] = names
		}
		return slices.Clone(names)
	}
}
