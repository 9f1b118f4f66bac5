package eval

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/syntax"
)

// hoist returns an expression that means the same for every instance, in which
// the parts that do not refer to an instance are replaced by their values: a
// list of all instances of another job is then made once, not once for each
// instance of this one. Parts that have no value are left as they are.
func hoist(expr hclsyntax.Expression, ctx *hcl.EvalContext) hclsyntax.Expression {
	if !refersToInstance(expr) {
		val, diags := expr.Value(ctx)
		if len(diags) > 0 {
			return expr
		}
		return &hclsyntax.LiteralValueExpr{Val: val, SrcRange: expr.Range()}
	}
	in := func(part hclsyntax.Expression) hclsyntax.Expression { return hoist(part, ctx) }
	switch x := expr.(type) {
	case *hclsyntax.TupleConsExpr:
		c := *x
		c.Exprs = hoistAll(x.Exprs, in)
		return &c
	case *hclsyntax.ObjectConsExpr:
		c := *x
		c.Items = slices.Clone(x.Items)
		for i := range c.Items { // keys are mostly names, which are no references
			c.Items[i].ValueExpr = in(c.Items[i].ValueExpr)
		}
		return &c
	case *hclsyntax.FunctionCallExpr:
		c := *x
		c.Args = hoistAll(x.Args, in)
		return &c
	case *hclsyntax.TemplateExpr:
		c := *x
		c.Parts = hoistAll(x.Parts, in)
		return &syntax.Template{TemplateExpr: &c}
	case *hclsyntax.ConditionalExpr:
		c := *x
		c.Condition, c.TrueResult, c.FalseResult = in(x.Condition), in(x.TrueResult), in(x.FalseResult)
		return &c
	case *hclsyntax.BinaryOpExpr:
		c := *x
		c.LHS, c.RHS = in(x.LHS), in(x.RHS)
		return &c
	}
	return hoistOne(expr, in)
}

// hoistOne is hoist for what has one part that may be evaluated by itself: what
// a for or a splat does with each element knows names that stand nowhere else.
func hoistOne(expr hclsyntax.Expression, in func(hclsyntax.Expression) hclsyntax.Expression) hclsyntax.Expression {
	switch x := expr.(type) {
	case *hclsyntax.TemplateWrapExpr:
		c := *x
		c.Wrapped = in(x.Wrapped)
		return &c
	case *hclsyntax.ParenthesesExpr:
		c := *x
		c.Expression = in(x.Expression)
		return &c
	case *hclsyntax.UnaryOpExpr:
		c := *x
		c.Val = in(x.Val)
		return &c
	case *hclsyntax.IndexExpr:
		c := *x
		c.Collection, c.Key = in(x.Collection), in(x.Key)
		return &c
	case *hclsyntax.RelativeTraversalExpr:
		c := *x
		c.Source = in(x.Source)
		return &c
	case *hclsyntax.ForExpr:
		c := *x
		c.CollExpr = in(x.CollExpr)
		return &c
	case *syntax.Uniform:
		loop := *x.ForExpr
		loop.CollExpr = in(loop.CollExpr)
		return &syntax.Uniform{ForExpr: &loop}
	case *hclsyntax.SplatExpr:
		c := *x
		c.Source = in(x.Source)
		return &c
	}
	return expr
}

func hoistAll(parts []hclsyntax.Expression, in func(hclsyntax.Expression) hclsyntax.Expression) []hclsyntax.Expression {
	hoisted := make([]hclsyntax.Expression, 0, len(parts))
	for _, part := range parts {
		hoisted = append(hoisted, in(part))
	}
	return hoisted
}

func refersToInstance(expr hclsyntax.Expression) bool {
	return slices.ContainsFunc(configs.References(expr), func(t hcl.Traversal) bool {
		return t.RootName() == string(configs.RootCount) || t.RootName() == string(configs.RootEach)
	})
}
