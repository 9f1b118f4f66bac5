package syntax

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Adapt has all that was parsed as node evaluate as fray's language says, where the library
// does otherwise or takes long.
func Adapt(node hclsyntax.Node) {
	strictOperators(node)
	uniformResults(node)
}

// strictOperators makes null an error as an operand of && and || in all that was
// parsed as node, as it is of every other operator: the library takes null for
// false there, so that a null in a condition would remove what the condition is of.
// The other operand decides all the same where it does so alone: var.x != null &&
// var.x is false without var.x.
func strictOperators(node hclsyntax.Node) {
	and, or := strict(hclsyntax.OpLogicalAnd, false), strict(hclsyntax.OpLogicalOr, true)
	_ = hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl.Diagnostics {
		if x, is := n.(*hclsyntax.BinaryOpExpr); is {
			switch x.Op {
			case hclsyntax.OpLogicalAnd:
				x.Op = and
			case hclsyntax.OpLogicalOr:
				x.Op = or
			}
		}
		return nil
	})
}

// strict is a logical operator for which null does not decide; one known operand
// that is deciding does.
func strict(op *hclsyntax.Operation, deciding bool) *hclsyntax.Operation {
	decides := func(v cty.Value) bool { return v.IsKnown() && !v.IsNull() && v.True() == deciding }
	c := *op
	c.ShortCircuit = func(left, right cty.Value, leftDiags, rightDiags hcl.Diagnostics) (cty.Value, hcl.Diagnostics) {
		switch {
		case !left.IsNull() && !right.IsNull():
			return op.ShortCircuit(left, right, leftDiags, rightDiags)
		case decides(left):
			return cty.BoolVal(deciding), leftDiags
		case decides(right):
			return cty.BoolVal(deciding), rightDiags
		}
		return cty.NilVal, nil // the operation rejects null
	}
	return &c
}
