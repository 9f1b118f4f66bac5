package main

import (
	"context"
	"maps"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// explain adds what only the files know to a plan: why something is deleted, and
// what becomes of the outputs that doc records.
func (l *loaded) explain(ctx context.Context, p *plan.Plan, c *change, doc *state.Document) error {
	if l.cfg == nil { // nothing is declared: a destroy, or a stop
		p.ExplainDeletions(nil)
		if c.unlaunchAll {
			p.Outputs = plan.OutputChanges(doc.Outputs, nil)
		}
		return nil
	}
	p.ExplainDeletions(l.cfg.Blocks)
	l.explainProjects(ctx, p, doc)
	declared, err := l.outputsAfter(p)
	if err != nil {
		return err
	}
	p.Outputs = plan.OutputChanges(doc.Outputs, declared)
	return nil
}

// outputsAfter are the outputs as an apply of the plan will record them: what
// they read of jobs that it starts anew is not known yet.
func (l *loaded) outputsAfter(p *plan.Plan) (map[string]schema.Output, error) {
	cfg := l.cfg
	stays := maps.Clone(l.opts.Computed)
	for i := range p.Changes {
		switch c := &p.Changes[i]; c.Verb {
		case plan.VerbRestart, plan.VerbReplace:
			delete(stays, c.Addr)
		case plan.VerbNone, plan.VerbCreate, plan.VerbUpdate, plan.VerbDelete:
		}
	}
	if len(stays) < len(l.opts.Computed) {
		opts := l.opts
		opts.Computed = stays
		if later, diags := l.src.Evaluate(opts); !diags.HasErrors() {
			cfg = later
		}
	}
	return schema.SealOutputs(cfg.Outputs, l.sealer)
}
