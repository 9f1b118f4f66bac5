package proposal

import (
	"context"
	"slices"
	"sync"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Accept is what a change makes of a document, with the causes of what it changes.
func Accept(ctx context.Context, l *configuration.Loaded, c *Change, doc *state.Document) *state.Document {
	next := apply.Accept(doc, c.Request(doc))
	if !Explains(l, c) {
		return next
	}
	e := explanation(ctx, l, next, c.Targets)
	next.Variables = e.Variables
	planchange.Explain(next, e.Causes)
	return next
}

// Explains reports whether what a change desires comes of the files.
func Explains(l *configuration.Loaded, c *Change) bool { return l.Config != nil && !c.KeepsRecorded }

// explanation is why what a document desires differs from what was carried out. Its
// Variables are still those of the last apply.
func explanation(ctx context.Context, l *configuration.Loaded, next *state.Document, targets []schema.Address) *apply.Explanation {
	now, err := state.DigestVariables(l.Config.Variables, l.Sealer)
	if err != nil { // without the key nothing is known of them; what needs it reports so
		now = nil
	}
	changed := now.Changed(next.Variables)
	e := &apply.Explanation{Causes: planchange.Causes(next, planchange.Sources{
		Variables: readerOf(l, changed),
		Files:     func(before, after string) []plan.FileChange { return projectChanges(ctx, l, before, after) },
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

// readerOf returns which of some variables an attribute reads; nil where there are none.
// The references of the files are followed once, when that is first asked for.
func readerOf(l *configuration.Loaded, changed []string) func(schema.Address, string) []string {
	if len(changed) == 0 {
		return nil
	}
	reads := sync.OnceValue(l.Source.Reads)
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
