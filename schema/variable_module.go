package schema

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"
)

// checkArguments reports arguments of module calls that are no variables.
func (m *module) checkArguments() {
	for _, name := range sortedKeys(m.children) {
		call, child := m.decls.calls[name].block, m.children[name]
		call.walkOpen(func(x *expression) {
			if child.decls.variables[x.name] == nil {
				m.errorAt(x.rng, "Unknown argument", fmt.Sprintf("The module %s has no variable %q. %s", child.files.shown, x.name, didYouMean(x.name, child.decls.variableNames())))
			}
		})
	}
}

// argument gives a variable of a called module its value: what the call says,
// or the default.
func (e *evaluator) argument(name string) {
	s := symbol{root: rootVar, name: name}
	v := e.variable(e.decls.variables[name])
	call := e.callBlock()
	val, ok := cty.NilVal, !e.failed[s]
	if x := call.attr(name); x != nil && call.typ.attr(name) == nil {
		out := e.parent.eval(x, e.at.values())
		ok = ok && out.ok && e.parent.fits(x, out.val)
		if ok {
			val, ok = e.fitArgument(v, x, out)
		}
	} else if ok && v.fallback == cty.NilVal {
		e.errorAt(call.rng(), "Missing argument", fmt.Sprintf("The module needs a value for its variable %q (%s): write %s = …", name, place(v.block.rng()), name))
		ok = false
	} else if ok {
		val = v.mark(v.fallback)
	}
	e.failed[s] = !ok
	if !ok {
		val = cty.DynamicVal
	}
	e.variables[name] = val
}

// fitArgument converts what a call says to the type of the variable.
func (e *evaluator) fitArgument(v *variable, x *expression, out evaluated) (cty.Value, bool) {
	if isEphemeral(out.val) && !v.ephemeral {
		e.add(valueError(x.expr.Range(), x.expr, out.ctx, "Ephemeral value", fmt.Sprintf(
			"The variable %q of the module keeps its value, and this one must not be kept. Write ephemeral = true in the variable (%s).", x.name, place(v.block.rng()))))
		return cty.NilVal, false
	}
	if out.val.IsNull() && !v.nullable && v.fallback != cty.NilVal {
		return v.mark(v.fallback), true
	}
	val, err := v.convert(out.val)
	switch {
	case err != nil:
		e.add(valueError(x.expr.Range(), x.expr, out.ctx, "Invalid value for "+x.name, sentence(v.misfit(err, v.sensitive || isSensitive(out.val) || isEphemeral(out.val)))))
		return cty.NilVal, false
	case val.IsNull() && !v.nullable:
		e.add(valueError(x.expr.Range(), x.expr, out.ctx, "Invalid value for "+x.name, "It must not be null."))
		return cty.NilVal, false
	}
	return v.mark(val), true
}

// handOut gives an output of a called module its value for the caller.
func (e *evaluator) handOut(name string) {
	b := e.decls.outputs[name]
	s := symbol{root: rootOutput, name: name}
	x := b.attr("value")
	if x == nil {
		e.failed[s] = true
		return
	}
	out := e.eval(x, nil)
	if !out.ok || !e.fits(x, out.val) {
		e.failed[s] = true
		return
	}
	val := out.val
	if e.constantBool(b.attr("sensitive"), false) {
		val = markSensitive(val)
	}
	switch ephemeral := e.constantBool(b.attr("ephemeral"), false); {
	case isEphemeral(val) && !ephemeral:
		e.add(valueError(x.expr.Range(), x.expr, out.ctx, "Ephemeral value", fmt.Sprintf("The output %q hands on a value that must not be kept. Write ephemeral = true in it.", name)))
		e.failed[s] = true
		return
	case ephemeral:
		val = val.Mark(ephemeralMark{})
	}
	e.outputs[name] = val
}

// ephemeralMark marks values that must not be kept.
type ephemeralMark struct{}

// isEphemeral reports whether a value or any part of it must not be kept.
func isEphemeral(v cty.Value) bool { return v.HasMarkDeep(ephemeralMark{}) }

// keepable reports whether a value may be recorded, and tells if not.
func (e *evaluator) keepable(x *expression, out evaluated) bool {
	if !isEphemeral(out.val) {
		return true
	}
	e.add(valueError(x.expr.Range(), x.expr, out.ctx, "Ephemeral value", fmt.Sprintf(
		"%q is recorded in plans and state, and an ephemeral value must not be. Make the variable sensitive instead: then it is recorded encrypted.", x.name)))
	return false
}
