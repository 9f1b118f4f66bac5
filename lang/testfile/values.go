package testfile

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/funcs"
)

// Configuration is what a test file is of.
type Configuration interface {
	Dir() string
	VariableNames() []string // of the root module
}

// Values evaluates what a run gives to a configuration: its variables, over
// those of the file, and what its data blocks read. runs has the outputs of
// earlier runs.
func (f *File) Values(run *Run, of Configuration, runs map[string]cty.Value) (eval.Options, hcl.Diagnostics) {
	r := diagnose.New()
	ctx := &hcl.EvalContext{Functions: funcs.InDirectory(of.Dir()), Variables: map[string]cty.Value{"run": cty.ObjectVal(runs)}}
	opts := eval.Options{Assigned: map[string]eval.Assigned{}, Overrides: map[string]eval.Override{}}
	declared := of.VariableNames()
	shared := map[string]cty.Value{}
	f.variables.Walk(func(x *configs.Expression) {
		val, ok := constantIn(r, x, ctx)
		if !ok {
			return
		}
		shared[x.Name] = val
		if run.Module == "" || slices.Contains(declared, x.Name) { // else it is for other runs
			opts.Assigned[x.Name] = eval.Assigned{Value: val, Range: x.Expr.Range()}
		}
	})
	ctx.Variables["var"] = cty.ObjectVal(shared)
	run.variables.Walk(func(x *configs.Expression) {
		if val, ok := constantIn(r, x, ctx); ok {
			opts.Assigned[x.Name] = eval.Assigned{Value: val, Range: x.Expr.Range()}
		}
	})
	reader := &testReader{Report: r, source: f.source}
	for _, b := range slices.Concat(f.overrides, run.overrides) {
		target, x := b.Attr("target"), b.Attr("values")
		if target == nil || x == nil {
			continue
		}
		name, _ := reader.written(target.Expr)
		if val, ok := constantIn(r, x, ctx); ok {
			shared := run.Module != "" && slices.Contains(f.overrides, b)
			opts.Overrides[name] = eval.Override{Value: val, Range: x.Expr.Range(), Target: target.Expr.Range(), Optional: shared}
		}
	}
	return opts, r.Sorted()
}

// constantIn evaluates an expression of a test file.
func constantIn(r *diagnose.Report, x *configs.Expression, ctx *hcl.EvalContext) (cty.Value, bool) {
	val, diags := x.Expr.Value(ctx)
	r.Extend(eval.Redact(diags, x, ctx))
	return val, !diags.HasErrors()
}
