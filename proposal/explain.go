package proposal

import (
	"context"
	"maps"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// ExplainPlan adds what only the files know to a plan: why something is deleted, and
// what becomes of the outputs that doc records.
func ExplainPlan(ctx context.Context, l *configuration.Loaded, p *plan.Plan, c *Change, doc *state.Document) error {
	if !Explains(l, c) { // nothing is declared: a destroy, or a stop
		p.ExplainDeletions(nil)
		if c.UnlaunchAll {
			p.Outputs = planchange.OutputChanges(doc.Outputs, nil)
		}
		return nil
	}
	p.ExplainDeletions(l.Config.Blocks)
	explainProjects(ctx, l, p, doc)
	declared, err := outputsAfter(l, p)
	if err != nil {
		return err
	}
	p.Outputs = planchange.OutputChanges(doc.Outputs, declared)
	return nil
}

// outputsAfter are the outputs as an apply of the plan will record them: what
// they read of jobs that it starts anew is not known yet.
func outputsAfter(l *configuration.Loaded, p *plan.Plan) (map[string]schema.Output, error) {
	cfg := l.Config
	stays := maps.Clone(l.Options.Computed)
	for i := range p.Changes {
		switch c := &p.Changes[i]; c.Verb {
		case plan.VerbRestart, plan.VerbReplace:
			delete(stays, c.Addr)
		case plan.VerbNone, plan.VerbCreate, plan.VerbUpdate, plan.VerbDelete:
		}
	}
	if len(stays) < len(l.Options.Computed) {
		opts := l.Options
		opts.Computed = stays
		if later, diags := l.Source.Evaluate(opts); !diags.HasErrors() {
			cfg = later
		}
	}
	return schema.SealOutputs(cfg.Outputs, l.Sealer)
}
