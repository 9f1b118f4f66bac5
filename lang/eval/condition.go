package eval

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/mark"
	"github.com/fray-ml/fray/schema"
)

// Held is how a block with a condition and an error_message stands.
type Held struct {
	Status  schema.ConditionStatus
	Message string
	Range   hcl.Range // of the condition
	Expr    hcl.Expression
	Context *hcl.EvalContext
}

// Holds evaluates a condition. One that is wrong itself is reported, and stands
// as unknown.
func (e *Evaluator) Holds(b *configs.Block, s RepetitionData) Held {
	h := Held{Status: schema.ConditionUnknown}
	condition, message := b.Attr("condition"), b.Attr("error_message")
	if condition == nil || message == nil {
		return h
	}
	h.Range, h.Expr = condition.Expr.Range(), condition.Expr
	out := e.Eval(condition, s)
	if !out.OK {
		return h
	}
	h.Context = out.Context
	text := e.errorMessage(message, s)
	val, _ := out.Value.UnmarkDeep()
	val, err := convert.Convert(val, cty.Bool)
	switch {
	case err != nil || val.IsNull():
		e.Add(ValueError(h.Range, h.Expr, out.Context, "Invalid value for condition", "Want a condition that is true or false."))
	case !val.IsKnown():
	case val.True():
		h.Status = schema.ConditionHolds
	default:
		h.Status = schema.ConditionFails
		h.Message = text
	}
	return h
}

// errorMessage is the error_message of a condition that does not hold.
func (e *Evaluator) errorMessage(x *configs.Expression, s RepetitionData) string {
	const fallback = "The condition does not hold."
	out := e.Eval(x, s)
	if !out.OK {
		return fallback
	}
	if mark.IsSensitive(out.Value) || mark.IsEphemeral(out.Value) {
		return fallback + " Its error_message is not shown, because it contains a sensitive value."
	}
	text, err := convert.Convert(out.Value, cty.String)
	switch {
	case err != nil:
		e.WrongValue(x, out, fmt.Errorf("want a string, this is %s", diagnose.Friendly(out.Value)))
		return fallback
	case !text.IsKnown() || text.IsNull():
		return fallback
	}
	return text.AsString()
}

// Named is a name in this module as the rest knows it.
func (e *Evaluator) Named(name string) string {
	if e.Path == "" {
		return name
	}
	return e.Path + "." + name
}
