package eval

import (
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/mark"
)

// argument gives a variable of a called module its value: the call's argument,
// or the default.
func (e *Evaluator) argument(name string) {
	s := configs.Symbol{Root: configs.RootVar, Name: name}
	v := e.variable(e.Decls.Variables[name])
	call := e.CallBlock()
	val, ok := cty.NilVal, !e.failed[s]
	if x := call.Attr(name); x != nil && call.Type.Attr(name) == nil {
		out := e.Parent.Eval(x, e.at.Values())
		ok = ok && out.OK && e.Parent.fits(x, out.Value) && !undeclared(e.Reporter, name, x.Expr, v.typ)
		if ok {
			var problem *hcl.Diagnostic
			if val, problem = v.argument(x, out); problem != nil {
				e.Add(problem)
				ok = false
			}
		}
	} else if ok && v.fallback == cty.NilVal {
		e.ErrorAt(call.Range(), "Missing argument", fmt.Sprintf("The module needs a value for its variable %q (%s): write %s = …", name, diagnose.Place(v.block.Range()), name))
		ok = false
	} else if ok {
		val = v.mark(v.fallback)
	}
	e.failed[s] = !ok
	if !ok {
		val = cty.DynamicVal
	}
	e.Variables[name] = val
}

// argument converts a call's argument to the type of the variable.
func (v *variable) argument(x *configs.Expression, out configs.Result) (cty.Value, *hcl.Diagnostic) {
	at := x.Expr.Range()
	report := func(summary, detail string) (cty.Value, *hcl.Diagnostic) {
		return cty.NilVal, ValueError(at, x.Expr, out.Context, summary, detail)
	}
	if mark.IsEphemeral(out.Value) && !v.ephemeral {
		return report("Ephemeral value", fmt.Sprintf(
			"The variable %q of the module keeps its value, and this one must not be kept. Write ephemeral = true in the variable (%s).", x.Name, diagnose.Place(v.block.Range())))
	}
	if out.Value.IsNull() && !v.nullable && v.fallback != cty.NilVal {
		return v.mark(v.fallback), nil
	}
	val, err := v.convert(out.Value)
	switch {
	case err != nil:
		if path, ok := errors.AsType[cty.PathError](err); ok && len(path.Path) > 0 {
			at = within(x.Expr, stepsOf(path.Path))
		}
		return report("Invalid value for "+x.Name, diagnose.Sentence(v.misfit(err, v.sensitive || mark.IsSensitive(out.Value) || mark.IsEphemeral(out.Value))))
	case val.IsNull() && !v.nullable:
		return report("Invalid value for "+x.Name, "It must not be null.")
	}
	return v.mark(val), nil
}

// handOut gives an output of a called module its value for the caller.
func (e *Evaluator) handOut(name string) {
	b := e.Decls.Outputs[name]
	s := configs.Symbol{Root: configs.RootOutput, Name: name}
	x := b.Attr("value")
	if x == nil {
		e.failed[s] = true
		return
	}
	out := e.Eval(x, nil)
	if !out.OK || !e.fits(x, out.Value) {
		e.failed[s] = true
		return
	}
	val := out.Value
	if e.ConstantBool(b.Attr("sensitive"), false) {
		val = mark.MakeSensitive(val)
	}
	switch ephemeral := e.ConstantBool(b.Attr("ephemeral"), false); {
	case mark.IsEphemeral(val) && !ephemeral:
		e.Add(ValueError(x.Expr.Range(), x.Expr, out.Context, "Ephemeral value", fmt.Sprintf("The output %q hands on a value that must not be kept. Write ephemeral = true in it.", name)))
		e.failed[s] = true
		return
	case ephemeral:
		val = val.Mark(mark.Ephemeral{})
	}
	e.outputs[name] = val
}
