package eval

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
)

// NotKnown reports that an expression has no known value where one is needed.
func (e *Evaluator) NotKnown(x *configs.Expression, ctx *hcl.EvalContext, detail string) {
	d := ValueError(x.Expr.Range(), x.Expr, ctx, "Not known at plan time", detail)
	d.Extra = diagnose.NotKnown
	e.Add(d)
}

// With Options.Partial the files are judged without the values they will get:
// what follows from a value that is not known is neither expanded nor reported.

// Add reports a diagnostic, unless it is only that a value is not known yet.
func (e *Evaluator) Add(d *hcl.Diagnostic) {
	if e.Options.Partial && diagnose.HasCause(d, diagnose.NotKnown) {
		e.Partial = true
		return
	}
	e.Report.Add(d)
}
