package funcs

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

func parseArgument(t *testing.T, src string) hclsyntax.Expression {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(src), "x.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return expr
}

// Collections of one type are made without comparing every two elements, and
// are what the general way makes.
func TestToCollectionOfOneType(t *testing.T) {
	ctx := &hcl.EvalContext{Functions: InDirectory(t.TempDir())}
	for _, tt := range []struct {
		src  string
		want cty.Value
	}{
		{`toset(["b", "a", "b"])`, cty.SetVal([]cty.Value{cty.StringVal("a"), cty.StringVal("b")})},
		{`toset(["b", 1])`, cty.SetVal([]cty.Value{cty.StringVal("b"), cty.StringVal("1")})},
		{`tolist([1, 2])`, cty.ListVal([]cty.Value{cty.NumberIntVal(1), cty.NumberIntVal(2)})},
		{`tomap({ a = true, b = false })`, cty.MapVal(map[string]cty.Value{"a": cty.True, "b": cty.False})},
		{`tomap({ a = true, b = "x" })`, cty.MapVal(map[string]cty.Value{"a": cty.StringVal("true"), "b": cty.StringVal("x")})},
		{`toset([])`, cty.SetValEmpty(cty.DynamicPseudoType)},
		{`tolist(toset(["a"]))`, cty.ListVal([]cty.Value{cty.StringVal("a")})},
		{`toset([null, null])`, cty.SetVal([]cty.Value{cty.NullVal(cty.DynamicPseudoType)})},
		{`tolist([["a"], ["b"]])`, cty.ListVal([]cty.Value{cty.TupleVal([]cty.Value{cty.StringVal("a")}), cty.TupleVal([]cty.Value{cty.StringVal("b")})})},
	} {
		got, diags := parseArgument(t, tt.src).Value(ctx)
		if diags.HasErrors() || !got.RawEquals(tt.want) {
			t.Errorf("%s: got %#v, %v, want %#v", tt.src, got, diags, tt.want)
		}
	}
	if _, diags := parseArgument(t, `tolist("a")`).Value(ctx); !diags.HasErrors() {
		t.Error("a string became a list")
	}
}
