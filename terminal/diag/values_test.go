package diag

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

func TestStatements(t *testing.T) {
	secret := cty.StringVal("hunter2").Mark("sensitive")
	context := &hcl.EvalContext{Variables: map[string]cty.Value{
		"text": cty.StringVal("a\"b"), "long": cty.StringVal(strings.Repeat("é", 200)), "number": cty.NumberFloatVal(1.5), "yes": cty.True,
		"none": cty.NullVal(cty.String), "later": cty.UnknownVal(cty.Number), "any": cty.DynamicVal,
		"secret": secret, "list": cty.ListVal([]cty.Value{cty.StringVal("x")}), "none_yet": cty.ListValEmpty(cty.Bool),
		"object": cty.ObjectVal(map[string]cty.Value{"a": cty.True, "b": secret}), "plain": cty.ObjectVal(map[string]cty.Value{"a": cty.True}),
	}}
	for _, c := range []struct{ expr, traversal, want string }{
		{"text", "text", `is "a\"b"`},
		{"long", "long", `is "` + strings.Repeat("é", maxLiteral) + `…"`},
		{"number", "number", "is 1.5"},
		{"yes", "yes", "is true"},
		{"none", "none", "is null"},
		{"later", "later", "is a number, not known yet"},
		{"any.value", "any.value", "is not known yet"},
		{"secret", "secret", "has a sensitive value"},
		{"object", "object", "has a sensitive value"},
		{"object.a", "object.a", "is true"},
		{"plain", "plain", "is object with 1 attribute"},
		{"list", "list", "is list of string with 1 element"},
		{"list[0]", "list[0]", `is "x"`},
		{`plain["a"]`, `plain["a"]`, "is true"},
		{"none_yet", "none_yet", "is list of bool with 0 elements"},
		{"missing", "", ""},
	} {
		t.Run(c.expr, func(t *testing.T) {
			expr, diags := hclsyntax.ParseExpression([]byte("f("+c.expr+", "+c.expr+")"), "x", hcl.InitialPos)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			got := Values(&hcl.Diagnostic{Expression: expr, EvalContext: context})
			want := []Value{{c.traversal, c.want}}
			if c.want == "" {
				want = []Value{}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
