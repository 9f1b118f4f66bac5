package testfile

import (
	"maps"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/show"
	"github.com/fray-ml/fray/schema"
)

// Assert evaluates the assertions of the test in a scope. What does not hold, and what cannot
// be decided, is an error.
func (run *Run) Assert(sc *eval.Scope) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, b := range run.asserts {
		diags = append(diags, sc.Reporting(func() { assertIn(sc, b.Clone()) })...)
	}
	return diags
}

func assertIn(sc *eval.Scope, b *configs.Block) {
	with := eval.RepetitionData{}
	ready := true
	b.Walk(func(x *configs.Expression) {
		vals, ok := sc.Prepare(x)
		ready = ready && ok
		maps.Copy(with, vals)
	})
	if !ready {
		return
	}
	root := sc.Session.Root()
	before := len(root.Diags)
	switch h := root.Holds(b, with); {
	case len(root.Diags) > before:
	case h.Status == schema.ConditionUnknown:
		sc.Session.Add(eval.ValueError(h.Range, h.Expr, h.Context, "Unknown condition",
			"This is decided by values that are known only after apply. Use command = apply in this run, or assert something that the plan knows."))
	case h.Status == schema.ConditionFails:
		d := eval.ValueError(h.Range, h.Expr, h.Context, "Test assertion failed", h.Message)
		if sides := compared(h.Expr, h.Context); sides != "" {
			d.Detail += "\n\n" + sides
		}
		sc.Session.Add(d)
	}
}

// maxSide bounds the lines of a side of a comparison that are shown.
const maxSide = 20

// compared shows both sides of the comparison that a condition comes down to;
// "" where it is none.
func compared(expr hcl.Expression, ctx *hcl.EvalContext) string {
	op := comparison(expr, ctx)
	if op == nil {
		return ""
	}
	var text strings.Builder
	for _, side := range []struct {
		name string
		expr hclsyntax.Expression
	}{{"Left side: ", op.LHS}, {"Right side: ", op.RHS}} {
		val, diags := side.expr.Value(ctx)
		if diags.HasErrors() {
			return ""
		}
		lines := strings.Split(show.Value(val), "\n")
		if len(lines) > maxSide {
			lines = append(lines[:maxSide], "…")
		}
		text.WriteString(side.name + strings.Join(lines, "\n") + "\n")
	}
	return strings.TrimSpace(text.String())
}

// comparison finds the comparison that makes a condition false.
func comparison(expr hcl.Expression, ctx *hcl.EvalContext) *hclsyntax.BinaryOpExpr {
	for {
		switch x := expr.(type) {
		case *hclsyntax.ParenthesesExpr:
			expr = x.Expression
			continue
		case *hclsyntax.BinaryOpExpr:
			switch x.Op {
			case hclsyntax.OpEqual, hclsyntax.OpNotEqual, hclsyntax.OpGreaterThan, hclsyntax.OpGreaterThanOrEqual,
				hclsyntax.OpLessThan, hclsyntax.OpLessThanOrEqual:
				return x
			}
			if x.Op.Impl == hclsyntax.OpLogicalAnd.Impl { // syntax.Adapt has put another operation there
				expr = x.RHS
				if val, diags := x.LHS.Value(ctx); !diags.HasErrors() && isFalse(val) {
					expr = x.LHS
				}
				continue
			}
		}
		return nil
	}
}

func isFalse(v cty.Value) bool {
	v, _ = v.Unmark()
	return v.IsKnown() && !v.IsNull() && v.Type() == cty.Bool && v.False()
}
