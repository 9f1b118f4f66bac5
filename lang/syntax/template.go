package syntax

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Template is a template whose parts are mostly strings and whole numbers, for which it does
// not go the long way of the library's conversions. A block with for_each evaluates its
// templates for each of its instances.
type Template struct{ *hclsyntax.TemplateExpr }

var _ hclsyntax.Expression = (*Template)(nil)

// Value is that of the library.
func (t *Template) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	var text strings.Builder
	for _, part := range t.Parts {
		val, diags := part.Value(ctx)
		if len(diags) > 0 || !appendPlain(&text, val) {
			return t.TemplateExpr.Value(ctx)
		}
	}
	return cty.StringVal(text.String()), nil
}

// exactIntegers is how large integers may be that a float64 tells from their neighbours: a number
// of that precision is written with all of its digits.
const exactIntegers = 1 << 53

// appendPlain appends a value as templates show it, if it is a string or a whole number that is
// known and has no marks.
func appendPlain(text *strings.Builder, val cty.Value) bool {
	if val.IsMarked() || !val.IsKnown() || val.IsNull() {
		return false
	}
	switch val.Type() {
	case cty.String:
		text.WriteString(val.AsString())
		return true
	case cty.Number:
		f := val.AsBigFloat()
		n, accuracy := f.Int64()
		if accuracy != big.Exact || n >= exactIntegers || n <= -exactIntegers || f.Prec() < 53 || n == 0 && f.Signbit() {
			return false
		}
		text.WriteString(strconv.FormatInt(n, 10))
		return true
	}
	return false
}
