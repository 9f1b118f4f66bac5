package eval

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/funcs"
	"github.com/fray-ml/fray/lang/mark"
)

// instanceContexts are what an expression is evaluated in: what is the same for
// all instances, and two instances.
func instanceContexts(t *testing.T) (*hcl.EvalContext, []*hcl.EvalContext) {
	t.Helper()
	outer := &hcl.EvalContext{
		Functions: funcs.InDirectory(t.TempDir()),
		Variables: map[string]cty.Value{
			"local": cty.ObjectVal(map[string]cty.Value{
				"list":    cty.ListVal([]cty.Value{cty.StringVal("a"), cty.StringVal("b")}),
				"map":     cty.MapVal(map[string]cty.Value{"k0": cty.StringVal("x"), "k1": cty.StringVal("y")}),
				"unknown": cty.UnknownVal(cty.String),
				"secret":  cty.StringVal("s").Mark(mark.Sensitive{}),
				"n":       cty.NumberIntVal(3),
			}),
		},
	}
	var instances []*hcl.EvalContext
	for i, key := range []string{"k0", "k1"} {
		ctx := outer.NewChild()
		ctx.Variables = map[string]cty.Value{
			"count": cty.ObjectVal(map[string]cty.Value{"index": cty.NumberIntVal(int64(i))}),
			"each":  cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(key), "value": cty.NumberIntVal(int64(i))}),
		}
		instances = append(instances, ctx)
	}
	return outer, instances
}

func parseExpression(t *testing.T, src string) hclsyntax.Expression {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(src), "x.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return expr
}

// A hoisted expression has the value of the one that was written, errors too.
func TestHoistKeepsTheMeaning(t *testing.T) {
	outer, instances := instanceContexts(t)
	for _, src := range []string{
		`["go", each.key, join(",", local.list), upper("x")]`,
		`{ (each.key) = join(",", local.list), name = each.key, n = local.n }`,
		`"${each.key}-${join("+", local.list)}-${local.n}"`,
		`"${each.key}"`,
		`local.map[each.key]`,
		`{ k0 = { a = local.n }, k1 = { a = 2 } }[each.key].a`,
		`count.index == 0 ? local.list : [each.key]`,
		`count.index + local.n * 2`,
		`-(count.index + length(local.list))`,
		`!(each.key == "k0")`,
		`[for l in local.list : "${l}${each.key}"]`,
		`[for local in ["p"] : "${local}${each.key}"]`,
		`[for i, l in concat(local.list, [each.key]) : l if i < local.n]`,
		`[{ a = each.key }, { a = join("", local.list) }][*].a`,
		`try(local.missing, each.key)`,
		`can(local.missing) ? "yes" : each.key`,
		`"${each.key}${local.unknown}"`,
		`[local.secret, each.key]`,
		`each.value > 0 ? local.list[each.value] : local.list[7]`,
		`join(each.key, local.n)`,
		`[local.missing, each.key]`,
	} {
		expr := parseExpression(t, src)
		hoisted := hoist(expr, outer)
		for i, ctx := range instances {
			want, wantDiags := expr.Value(ctx)
			got, gotDiags := hoisted.Value(ctx)
			if wantDiags.HasErrors() != gotDiags.HasErrors() {
				t.Errorf("%s, instance %d: got %v, want %v", src, i, gotDiags, wantDiags)
			} else if !wantDiags.HasErrors() && !got.RawEquals(want) {
				t.Errorf("%s, instance %d: got %#v, want %#v", src, i, got, want)
			}
		}
	}
}

// What does not refer to an instance is evaluated before there is one.
func TestHoistEvaluatesWhatIsTheSameForAll(t *testing.T) {
	outer, _ := instanceContexts(t)
	for _, src := range []string{
		`["x", upper(local.list[0]), each.key]`, `"${upper("a")}${each.key}"`, `join(each.key, [for l in local.list : upper(l)])`,
		`{ a = upper("b"), b = each.key }`, `each.key == upper("k") ? upper("a") : upper("b")`, `{ k0 = upper("a"), k1 = "" }[each.key]`,
		`(each.key == upper("c"))`, `[for l in [upper("x")] : "${l}${each.key}"]`,
	} {
		hoisted := hoist(parseExpression(t, src), outer)
		calls := 0
		_ = hclsyntax.VisitAll(hoisted, func(n hclsyntax.Node) hcl.Diagnostics {
			if call, ok := n.(*hclsyntax.FunctionCallExpr); ok && call.Name == "upper" {
				calls++
			}
			return nil
		})
		if calls > 0 {
			t.Errorf("%s: %d calls are left for each instance, want none", src, calls)
		}
	}
}
