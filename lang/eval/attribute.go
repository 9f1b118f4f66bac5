package eval

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
)

// RepetitionData is what expressions of one instance may refer to besides the rest.
type RepetitionData map[string]cty.Value

// valuer evaluates the attributes of one instance of a module.
type valuer interface {
	Eval(x *configs.Expression, instance map[string]cty.Value) configs.Result
	Plain(x *configs.Expression, out configs.Result, what string) bool
	WrongValue(x *configs.Expression, out configs.Result, err error)
}

var _ valuer = (*Evaluator)(nil)

// Get decodes an attribute, or returns def where it is absent, null or wrong;
// what is wrong with it is reported.
func Get[T any](e valuer, s RepetitionData, x *configs.Expression, as as.Converter[T], def T) T {
	v, _ := Lookup(e, s, x, as, def)
	return v
}

// Lookup is get, and reports whether the attribute has a value.
func Lookup[T any](e valuer, s RepetitionData, x *configs.Expression, as as.Converter[T], def T) (T, bool) {
	if x == nil {
		return def, false
	}
	out := e.Eval(x, s)
	if !out.OK || !e.Plain(x, out, fmt.Sprintf("%q", x.Name)) || out.Value.IsNull() {
		return def, false
	}
	v, err := as(out.Value)
	if err != nil {
		e.WrongValue(x, out, err)
		return def, false
	}
	return v, true
}
