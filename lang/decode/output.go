package decode

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/mark"
	"github.com/fray-ml/fray/schema"
)

// Output evaluates an output block.
func (e *Decoder) Output(b *configs.Block) schema.Output {
	o := schema.Output{
		Description: e.ConstantString(b.Attr("description")),
		Sensitive:   e.ConstantBool(b.Attr("sensitive"), false),
	}
	e.DependsOn(b) // only for its mistakes: outputs are recorded when all is done
	if e.ConstantBool(b.Attr("ephemeral"), false) {
		e.ErrorAt(b.Attr("ephemeral").Range, "Ephemeral value", "The outputs of the configuration are recorded, so they keep their values: only a module's output can be ephemeral.")
	}
	x := b.Attr("value")
	if x == nil {
		return o
	}
	out := e.Eval(x, nil)
	if !out.OK || !e.Keepable(x, out) {
		return o
	}
	if mark.IsSensitive(out.Value) && !o.Sensitive {
		e.Add(eval.ValueError(x.Expr.Range(), x.Expr, out.Context, "Sensitive value",
			fmt.Sprintf("The output %q would show a sensitive value. Write sensitive = true in it, or use nonsensitive() if the value is no secret.", b.Name)))
		return o
	}
	val, _ := out.Value.UnmarkDeep()
	if !val.IsWhollyKnown() {
		o.Unknown = true
		return o
	}
	data, err := ctyjson.Marshal(val, typeForJSON(val))
	if err != nil {
		e.WrongValue(x, out, fmt.Errorf("it cannot be shown: %w", err))
		return o
	}
	if o.Sensitive {
		o.Secret = schema.Secret(string(data))
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
