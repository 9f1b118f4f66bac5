package eval

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
)

// maxHinted bounds the names among which a misspelt one is searched.
const maxHinted = 1000

// nameHint suggests a name where an expression asks a value for one
// that it does not have; "" for all other diagnostics.
func nameHint(d *hcl.Diagnostic) string {
	if d.EvalContext == nil {
		return ""
	}
	switch expr := d.Expression.(type) {
	case *hclsyntax.BinaryOpExpr:
		return nullHint(d.EvalContext, expr.LHS, expr.RHS)
	case *hclsyntax.UnaryOpExpr:
		return nullHint(d.EvalContext, expr.Val)
	case *hclsyntax.ScopeTraversalExpr:
		of := expr.Traversal[:1]
		val, diags := of.TraverseAbs(d.EvalContext)
		if diags.HasErrors() {
			return ""
		}
		return missingIn(val, expr.Traversal, 1)
	case *hclsyntax.RelativeTraversalExpr:
		val, diags := expr.Source.Value(d.EvalContext)
		if diags.HasErrors() {
			return ""
		}
		return missingIn(val, expr.Traversal, 0)
	case *hclsyntax.IndexExpr:
		val, diags := expr.Collection.Value(d.EvalContext)
		key, keyDiags := expr.Key.Value(d.EvalContext)
		if diags.HasErrors() || keyDiags.HasErrors() || key.IsMarked() || !key.IsKnown() || key.IsNull() {
			return ""
		}
		path, _ := hcl.AbsTraversalForExpr(expr.Collection) // none where it is no reference
		return missingIn(val, append(slices.Clip(path), hcl.TraverseIndex{Key: key}), len(path))
	}
	return ""
}

// nullHint names the first of some operands that is null, and what to write instead.
func nullHint(ctx *hcl.EvalContext, operands ...hclsyntax.Expression) string {
	for i, operand := range operands {
		val, diags := operand.Value(ctx)
		if diags.HasErrors() || val.IsMarked() || !val.IsNull() {
			continue
		}
		which := "The operand"
		if len(operands) == 2 {
			which = []string{"The left operand", "The right operand"}[i]
		}
		return which + " is null. Compare it with null first, as in a != null && a, or give it a default with coalesce()."
	}
	return ""
}

// missingIn is the hint for the first step, from some step on, that a value does not
// have.
func missingIn(val cty.Value, steps hcl.Traversal, from int) string {
	for i := from; i < len(steps); i++ {
		step := steps[i]
		next, diags := step.TraversalStep(val)
		if !diags.HasErrors() {
			val = next
			continue
		}
		name, ok := configs.StepName(steps, i)
		if !ok {
			return outside(val, steps[:i], step)
		}
		if names := namesIn(val); len(names) > 0 {
			return diagnose.DidYouMean(name, names)
		}
		return ""
	}
	return ""
}

// outside is the hint for a number that is no index of a list, which a reference may
// lead to.
func outside(val cty.Value, path hcl.Traversal, step hcl.Traverser) string {
	index, is := step.(hcl.TraverseIndex)
	if !is || index.Key.Type() != cty.Number || val.IsMarked() || !val.IsKnown() || val.IsNull() || !val.Type().IsListType() && !val.Type().IsTupleType() {
		return ""
	}
	name := pathText(path)
	switch n := val.LengthInt(); n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("The only element is %s[0].", name)
	default:
		return fmt.Sprintf("The elements are %s[0] to %s[%d].", name, name, n-1)
	}
}

// pathText is a reference as it is written, "" where it has more than names.
func pathText(path hcl.Traversal) string {
	var names []string
	for i, step := range path {
		name, ok := configs.StepName(path, i)
		if root, is := step.(hcl.TraverseRoot); is {
			name, ok = root.Name, true
		}
		if !ok {
			return ""
		}
		names = append(names, name)
	}
	return strings.Join(names, ".")
}

// namesIn are the names that a value can be asked for, none where they are
// sensitive or too many.
func namesIn(val cty.Value) []string {
	if val.IsMarked() || !val.IsKnown() || val.IsNull() {
		return nil
	}
	switch ty := val.Type(); {
	case ty.IsObjectType() && len(ty.AttributeTypes()) <= maxHinted:
		return slices.Sorted(maps.Keys(ty.AttributeTypes()))
	case ty.IsMapType() && val.LengthInt() <= maxHinted:
		return slices.Sorted(maps.Keys(val.AsValueMap()))
	}
	return nil
}

// typeHints adds to the diagnostics of a type which one may be meant.
func typeHints(diags hcl.Diagnostics) hcl.Diagnostics {
	if len(diags) == 0 {
		return nil
	}
	types := []string{"string", "number", "bool", "any", "list", "set", "map", "tuple", "object", "optional"}
	word := regexp.MustCompile(`eyword "([^"]*)" is not a valid type`)
	for _, d := range diags {
		if found := word.FindStringSubmatch(d.Detail); found != nil {
			d.Detail = strings.TrimSpace(fmt.Sprintf("There is no type %q. %s", found[1], diagnose.DidYouMean(found[1], types)))
		}
	}
	return diags
}
