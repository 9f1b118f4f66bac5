package schema

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// output evaluates an output block.
func (e *evaluator) output(b *block) Output {
	o := Output{
		Description: e.constantString(b.attr("description")),
		Sensitive:   e.constantBool(b.attr("sensitive"), false),
	}
	e.dependsOn(b) // only for its mistakes: outputs are recorded when all is done
	if e.constantBool(b.attr("ephemeral"), false) {
		e.errorAt(b.attr("ephemeral").rng, "Ephemeral value", "The outputs of the configuration are recorded, so they keep their values: only a module's output can be ephemeral.")
	}
	x := b.attr("value")
	if x == nil {
		return o
	}
	out := e.eval(x, nil)
	if !out.ok || !e.keepable(x, out) {
		return o
	}
	if isSensitive(out.val) && !o.Sensitive {
		e.add(valueError(x.expr.Range(), x.expr, out.ctx, "Sensitive value",
			fmt.Sprintf("The output %q would show a sensitive value. Write sensitive = true in it, or use nonsensitive() if the value is no secret.", b.name)))
		return o
	}
	val, _ := out.val.UnmarkDeep()
	if !val.IsWhollyKnown() {
		o.Unknown = true
		return o
	}
	data, err := ctyjson.Marshal(val, typeForJSON(val))
	if err != nil {
		e.wrongValue(x, out, fmt.Errorf("it cannot be shown: %w", err))
		return o
	}
	if o.Sensitive {
		o.Secret = Secret(string(data))
	} else {
		o.Value = data
	}
	return o
}

// typeForJSON is the type that a value is encoded as; null has none of its own.
func typeForJSON(v cty.Value) cty.Type {
	if v.Type() == cty.DynamicPseudoType {
		return cty.String
	}
	return v.Type()
}
