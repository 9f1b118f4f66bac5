package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// What a value may be at most. A few lines that double what the line before
// made would otherwise take all time and memory there is.
const (
	maxValueSize = 2_000_000        // elements of a value, all nested ones counted
	maxAllValues = 8 * maxValueSize // of all together
	maxValueText = 64 << 20         // bytes of one string
	maxNumber    = 10_000           // of a number, in base 10
)

// fits reports whether a value is of a size that others can be made of, and
// tells if not.
func (e *evaluator) fits(x *expression, val cty.Value) bool {
	if _, copied := x.expr.(*hclsyntax.ScopeTraversalExpr); copied {
		return true // has been looked at
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
	e.errorAt(x.expr.Range(), "Value too large", fmt.Sprintf("%s Make it of fewer or smaller parts.", what))
	return false
}

// oversize says what of a value is too large, "" if nothing is; left is how
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
			return fmt.Sprintf("It has a string of %s, and there may be %s at most.", Bytes(n), Bytes(maxValueText))
		}
	case ty == cty.Number:
		// A binary digit is 0.301 decimal ones.
		if exp := val.AsBigFloat().MantExp(nil); exp > maxNumber*10/3 || exp < -maxNumber*10/3 {
			return fmt.Sprintf("It has a number beyond 1e%d.", maxNumber)
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

// hugeNumber reports a literal that takes long to read and longer to write.
func hugeNumber(t hclsyntax.Token) *hcl.Diagnostic {
	text := strings.ToLower(string(t.Bytes))
	_, exponent, ok := strings.Cut(text, "e")
	if !ok {
		return nil
	}
	if n, err := strconv.Atoi(strings.TrimLeft(exponent, "+-")); err != nil || n > maxNumber {
		return errorAt(t.Range, "Number too large", fmt.Sprintf("The exponent of a number may be %d at most.", maxNumber))
	}
	return nil
}
