package eval

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
)

// Constants evaluates expressions that may call functions, but refer to nothing.
type Constants struct {
	report    Reporter
	functions *hcl.EvalContext
}

// constant evaluates an expression that may call functions, but not refer to
// anything.
func (c Constants) constant(x *configs.Expression) (cty.Value, bool) {
	if refs := configs.References(x.Expr); len(refs) > 0 {
		c.report.ErrorAt(refs[0].SourceRange(), "Reference not allowed", fmt.Sprintf("%s is read before there are values to refer to: write a constant. A local can combine variables.", diagnose.Capitalized(x.Name)))
		return cty.NilVal, false
	}
	val, diags := x.Expr.Value(c.functions)
	c.report.Extend(diags)
	return val, !diags.HasErrors()
}

// ConstantBool evaluates a bool that refers to nothing; def stands for an absent one.
func (c Constants) ConstantBool(x *configs.Expression, def bool) bool {
	if x == nil {
		return def
	}
	val, ok := c.constant(x)
	if !ok || val.IsNull() {
		return def
	}
	val, _ = val.Unmark()
	b, err := as.Bool(val)
	if err != nil {
		c.report.WrongValue(x, configs.Result{}, err)
		return def
	}
	return b
}

// ConstantString evaluates a string that refers to nothing.
func (c Constants) ConstantString(x *configs.Expression) string {
	if x == nil {
		return ""
	}
	val, ok := c.constant(x)
	if !ok || val.IsNull() {
		return ""
	}
	val, _ = val.Unmark()
	s, err := as.String(val)
	if err != nil {
		c.report.WrongValue(x, configs.Result{}, err)
	}
	return s
}
