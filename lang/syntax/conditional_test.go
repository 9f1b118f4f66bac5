package syntax

import (
	"fmt"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

func parsed(t *testing.T, text string) hclsyntax.Expression {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(text), "x.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return expr
}

// TestUniformResults: a conditional has the value that the library finds, of the same type,
// with the same marks and mistakes.
func TestUniformResults(t *testing.T) {
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{
		"yes": cty.True, "no": cty.False, "may": cty.UnknownVal(cty.Bool), "null": cty.NullVal(cty.Bool),
		"texts":   cty.ListVal([]cty.Value{cty.StringVal("a"), cty.StringVal("b")}),
		"mixed":   cty.TupleVal([]cty.Value{cty.StringVal("a"), cty.NumberIntVal(1)}),
		"hidden":  cty.TupleVal([]cty.Value{cty.StringVal("a"), cty.StringVal("b")}).Mark("secret"),
		"inside":  cty.TupleVal([]cty.Value{cty.StringVal("a"), cty.StringVal("b").Mark("secret")}),
		"late":    cty.TupleVal([]cty.Value{cty.StringVal("a"), cty.UnknownVal(cty.String)}),
		"unknown": cty.UnknownVal(cty.List(cty.String)), "dynamic": cty.DynamicVal,
		"nulls":   cty.TupleVal([]cty.Value{cty.NullVal(cty.DynamicPseudoType), cty.NullVal(cty.DynamicPseudoType)}),
		"objects": cty.TupleVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"n": cty.True}), cty.ObjectVal(map[string]cty.Value{"n": cty.False})}),
		"tuples":  cty.TupleVal([]cty.Value{cty.TupleVal([]cty.Value{cty.True}), cty.TupleVal([]cty.Value{cty.False})}),
		"nothing": cty.EmptyTupleVal,
	}}
	for _, of := range []string{"texts", "mixed", "hidden", "inside", "late", "unknown", "dynamic", "nulls", "objects", "tuples", "nothing"} {
		for _, condition := range []string{"yes", "no", "may", "null", "absent"} {
			for _, form := range []string{
				"%s ? [for x in %s : x] : []", "%s ? [] : [for x in %s : x]", "%s ? {for i, x in %s : i => x} : {}",
				"%s ? [for x in %s : x] : {}", "%s ? [for i, x in %s : { i = i, x = x }] : []", "%s ? {for i, x in %s : i => x...} : {}",
			} {
				text := fmt.Sprintf(form, condition, of)
				strict := parsed(t, text)
				Adapt(strict)
				want, wantDiags := parsed(t, text).Value(ctx)
				got, gotDiags := strict.Value(ctx)
				if !got.RawEquals(want) || gotDiags.Error() != wantDiags.Error() {
					t.Errorf("%s is %#v (%v), want %#v (%v)", text, got, gotDiags, want, wantDiags)
				}
			}
		}
	}
}

// TestUniformIsUnifiedBefore: of many elements of one type the library is given a list or a
// map, whose type it takes as it is.
func TestUniformIsUnifiedBefore(t *testing.T) {
	for text, want := range map[string]cty.Type{
		`c ? [for x in ["a", "b"] : x] : []`:         cty.List(cty.String),
		`c ? [for x in ["a", "b"] : { x = x }] : []`: cty.List(cty.Object(map[string]cty.Type{"x": cty.String})),
		`c ? {for x in ["a", "b"] : x => 1} : {}`:    cty.Map(cty.Number),
		`c ? [for x in ["a", "b"] : x] : ["c"]`:      cty.Tuple([]cty.Type{cty.String, cty.String}), // it may be of two
	} {
		expr := parsed(t, text)
		Adapt(expr)
		conditional, is := expr.(*hclsyntax.ConditionalExpr)
		if !is {
			t.Fatalf("%s is %T", text, expr)
		}
		if val, diags := conditional.TrueResult.Value(nil); diags.HasErrors() || !val.Type().Equals(want) {
			t.Errorf("the result of %s is of type %#v (%v), want %#v", text, val.Type(), diags, want)
		}
	}
}
