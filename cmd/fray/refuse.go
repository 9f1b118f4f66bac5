package main

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/state"
)

// refusals says what a plan refuses, on the lines that cause it, and what to do
// about it; nil if it refuses nothing.
func (a *app) refusals(l *loaded, p *plan.Plan) error {
	var diags hcl.Diagnostics
	for i := range p.Refusals {
		diags = append(diags, l.refusal(&p.Refusals[i]))
	}
	return a.diagnostics(filesOf(l.src), diags)
}

func (l *loaded) refusal(r *plan.Refusal) *hcl.Diagnostic {
	return l.diagnostic(r.Addr, "lifecycle.prevent_destroy", hcl.DiagError, "Protected by prevent_destroy", r.Detail)
}

// impossible says what could never be placed of an accepted configuration: what
// lifecycles ignore is as recorded there, and may not go with what the files say.
func (l *loaded) impossible(doc *state.Document) error {
	problems := plan.Check(&doc.Desired)
	if len(problems) == 0 {
		return nil
	}
	p := &problems[0]
	return fmt.Errorf("%s: %s (its lifecycle ignores changes: what is recorded counts)", p.Addr, p.Detail)
}

// refusedMeanwhile says what values that became known in the middle of an apply
// would have destroyed.
func (r *runner) refusedMeanwhile() error {
	last := r.stepper.Last()
	if last == nil || r.stopping {
		return nil
	}
	err := r.app.refusals(r.l, last)
	if err != nil {
		r.app.warn("everything else of this plan was done")
	}
	return err
}
