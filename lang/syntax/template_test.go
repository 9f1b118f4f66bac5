package syntax_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"github.com/fray-ml/fray/lang/syntax"
)

// templateParts are values that differ in how a template shows them.
func templateParts() []cty.Value {
	parts := []cty.Value{
		cty.StringVal(""), cty.StringVal("a"), cty.StringVal("e\u0301"), cty.StringVal("\u0301"), cty.StringVal("secret").Mark("sensitive"),
		cty.True, cty.NullVal(cty.String), cty.UnknownVal(cty.String), cty.UnknownVal(cty.Number), cty.DynamicVal, cty.EmptyTupleVal,
		cty.NumberIntVal(7).Mark("sensitive"), cty.PositiveInfinity, cty.NegativeInfinity, cty.NumberVal(new(big.Float).Neg(new(big.Float))),
	}
	for _, n := range []float64{0, 1, -1, 0.1, 2.5, 1 << 52, 1<<53 - 1, 1 << 53, 1 << 60, math.MaxInt64, 1e20, 1e-9} {
		exact := new(big.Float).SetPrec(512).SetFloat64(n)
		coarse := new(big.Float).SetPrec(8).SetFloat64(n)
		parts = append(parts, cty.NumberFloatVal(n), cty.NumberFloatVal(-n), cty.NumberVal(exact), cty.NumberVal(coarse))
	}
	return parts
}

// TestTemplate: a template has the value of the library's, with the same marks and errors.
func TestTemplate(t *testing.T) {
	of := func(vals ...cty.Value) *hclsyntax.TemplateExpr {
		library := &hclsyntax.TemplateExpr{}
		for _, val := range vals {
			library.Parts = append(library.Parts, &hclsyntax.LiteralValueExpr{Val: val})
		}
		return library
	}
	check := func(t interface {
		Helper()
		Errorf(string, ...any)
	}, library *hclsyntax.TemplateExpr) {
		t.Helper()
		want, wantDiags := library.Value(&hcl.EvalContext{})
		got, diags := (&syntax.Template{TemplateExpr: library}).Value(&hcl.EvalContext{})
		if !got.RawEquals(want) || diags.Error() != wantDiags.Error() {
			t.Errorf("got %#v and %v, want %#v and %v", got, diags, want, wantDiags)
		}
	}
	for _, val := range templateParts() {
		check(t, of(val))
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, of(rapid.SliceOfN(rapid.SampledFrom(templateParts()), 1, 4).Draw(t, "parts")...))
	})
}
