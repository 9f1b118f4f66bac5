package eval

import (
	"fmt"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/syntax"
	"github.com/fray-ml/fray/schema"
)

// What a value may be at most. A few lines that double what the line before
// made would otherwise take all time and memory there is.
const (
	maxValueSize = 2_000_000        // elements of a value, all nested ones counted
	maxAllValues = 8 * maxValueSize // of all together
	maxValueText = 64 << 20         // bytes of one string
)

// fits reports whether a value is of a size that others can be made of, and
// reports if not.
func (e *Evaluator) fits(x *configs.Expression, val cty.Value) bool {
	if _, copied := x.Expr.(*hclsyntax.ScopeTraversalExpr); copied {
		return true // has been measured
	}
	left := maxValueSize
	what := oversize(val, &left)
	e.size += maxValueSize - left
	switch {
	case what != "":
	case e.size > maxAllValues:
		what = fmt.Sprintf("With it, the values of the configuration have more than %d elements.", maxAllValues)
	default:
		return true
	}
	e.ErrorAt(x.Expr.Range(), "Value too large", fmt.Sprintf("%s Make it of fewer or smaller parts.", what))
	return false
}

// oversize is what of a value is too large, "" if nothing is; left is how
// many elements it may still have.
func oversize(val cty.Value, left *int) string {
	if *left--; *left < 0 {
		return fmt.Sprintf("It has more than %d elements.", maxValueSize)
	}
	val, _ = val.Unmark()
	if !val.IsKnown() || val.IsNull() {
		return ""
	}
	switch ty := val.Type(); {
	case ty == cty.String:
		if n := len(val.AsString()); n > maxValueText {
			return fmt.Sprintf("It has a string of %s, and there may be %s at most.", schema.Bytes(n), schema.Bytes(maxValueText))
		}
	case ty == cty.Number:
		// A binary digit is 0.301 decimal ones.
		if exp := val.AsBigFloat().MantExp(nil); exp > syntax.MaxNumber*10/3 || exp < -syntax.MaxNumber*10/3 {
			return fmt.Sprintf("It has a number beyond 1e%d.", syntax.MaxNumber)
		}
	case val.CanIterateElements():
		for it := val.ElementIterator(); it.Next(); {
			_, item := it.Element()
			if what := oversize(item, left); what != "" {
				return what
			}
		}
	}
	return ""
}
