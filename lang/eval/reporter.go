package eval

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/mark"
)

// Reporter reports what is wrong with the values of expressions.
//
// With Options.Partial the files are judged without the values they will get: what
// follows from a value that is not known is neither expanded nor reported.
type Reporter struct {
	*diagnose.Report
	omitted *bool // set where a value that is not known would be reported; nil: report it
}

// in reports about one module instance.
func (r Reporter) in(path string) Reporter {
	return Reporter{Report: r.In(path), omitted: r.omitted}
}

// Add reports a diagnostic, unless it is only that a value is not known yet.
func (r Reporter) Add(d *hcl.Diagnostic) {
	if r.omitted != nil && diagnose.HasCause(d, diagnose.NotKnown) {
		*r.omitted = true
		return
	}
	r.Report.Add(d)
}

// NotKnown reports that an expression has no known value where one is needed.
func (r Reporter) NotKnown(x *configs.Expression, ctx *hcl.EvalContext, detail string) {
	d := ValueError(x.Expr.Range(), x.Expr, ctx, "Not known at plan time", detail)
	d.Extra = diagnose.NotKnown
	r.Add(d)
}

// Keepable reports whether a value may be recorded; if not, it adds a diagnostic.
func (r Reporter) Keepable(x *configs.Expression, out configs.Result) bool {
	if !mark.IsEphemeral(out.Value) {
		return true
	}
	r.Add(ValueError(x.Expr.Range(), x.Expr, out.Context, "Ephemeral value", fmt.Sprintf(
		"%q is recorded in plans and state, and an ephemeral value must not be. Make the variable sensitive instead: then it is recorded encrypted.", x.Name)))
	return false
}

// Plain reports whether a value is known and not sensitive; if not, it adds a
// diagnostic.
func (r Reporter) Plain(x *configs.Expression, out configs.Result, what string) bool {
	if !r.Keepable(x, out) {
		return false
	}
	if mark.IsSensitive(out.Value) {
		r.Add(ValueError(x.Expr.Range(), x.Expr, out.Context, "Sensitive value",
			fmt.Sprintf("A sensitive value cannot decide %s, because plans show it. Use nonsensitive() if it is no secret.", what)))
		return false
	}
	if !out.Value.IsWhollyKnown() {
		r.NotKnown(x, out.Context,
			fmt.Sprintf("This comes from values that are known only after apply, but %s must be known at plan time. Such values can stand in command, env and outputs.", what))
		return false
	}
	return true
}

// WrongValue reports an attribute whose value does not fit.
func (r Reporter) WrongValue(x *configs.Expression, out configs.Result, err error) {
	r.Add(ValueError(x.Expr.Range(), x.Expr, out.Context, "Invalid value for "+x.Name, diagnose.Sentence(err.Error())))
}

// ValueError is an error about the value of an expression in a context.
func ValueError(rng hcl.Range, expr hcl.Expression, ctx *hcl.EvalContext, summary, detail string) *hcl.Diagnostic {
	d := diagnose.ErrorAt(rng, summary, detail)
	if ctx != nil {
		d.Expression, d.EvalContext = expr, ctx
	}
	return d
}
