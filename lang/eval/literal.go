package eval

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/diagnose"
)

// object returns an expression as an object that is written out, nil if it is none.
func object(expr hcl.Expression) *hclsyntax.ObjectConsExpr {
	for {
		inner, ok := expr.(*hclsyntax.ParenthesesExpr)
		if !ok {
			break
		}
		expr = inner.Expression
	}
	written, _ := expr.(*hclsyntax.ObjectConsExpr)
	return written
}

// writtenKey is the name of an attribute of an object that is written out, "" if it is computed.
func writtenKey(item hclsyntax.ObjectConsItem) string {
	key, diags := item.KeyExpr.Value(nil)
	if diags.HasErrors() || !key.IsKnown() || key.IsNull() || key.Type() != cty.String {
		return ""
	}
	return key.AsString()
}

// within is where a value stands below objects that are written out, as far as the path can be followed: the range of expr for a path
// whose first step is not written.
func within(expr hcl.Expression, path []string) hcl.Range {
	rng := expr.Range()
	for _, name := range path {
		written := object(expr)
		if written == nil {
			return rng
		}
		i := slices.IndexFunc(written.Items, func(item hclsyntax.ObjectConsItem) bool { return writtenKey(item) == name })
		if i < 0 {
			return rng
		}
		item := written.Items[i]
		expr, rng = item.ValueExpr, hcl.RangeBetween(item.KeyExpr.Range(), item.ValueExpr.Range())
	}
	return rng
}

// stepsOf are the names of the attributes and keys in a path of a value.
func stepsOf(path cty.Path) []string {
	var names []string
	for _, step := range path {
		switch step := step.(type) {
		case cty.GetAttrStep:
			names = append(names, step.Name)
		case cty.IndexStep:
			if step.Key.Type() != cty.String || !step.Key.IsKnown() || step.Key.IsNull() {
				return names
			}
			names = append(names, step.Key.AsString())
		}
	}
	return names
}

// readOf is the longest path below var.name that an expression reads: ["a", "b"] for var.name.a.b.
func readOf(expr hcl.Expression, name string) []string {
	var longest []string
	for _, traversal := range expr.Variables() {
		if len(traversal) < 2 || traversal.RootName() != "var" {
			continue
		}
		if first, ok := traversal[1].(hcl.TraverseAttr); !ok || first.Name != name {
			continue
		}
		var path []string
		for _, step := range traversal[2:] {
			attr, ok := step.(hcl.TraverseAttr)
			if !ok {
				break
			}
			path = append(path, attr.Name)
		}
		if len(path) > len(longest) {
			longest = path
		}
	}
	return longest
}

// undeclared reports the attributes of objects that are written out and that their type does not have: a conversion would drop them.
func undeclared(report Reporter, name string, expr hcl.Expression, typ cty.Type) bool {
	found := false
	written := object(expr)
	if written == nil {
		return false
	}
	for _, item := range written.Items {
		key := writtenKey(item)
		switch {
		case key == "":
		case typ.IsObjectType() && typ.HasAttribute(key):
			found = undeclared(report, name+"."+key, item.ValueExpr, typ.AttributeType(key)) || found
		case typ.IsObjectType():
			report.ErrorAt(item.KeyExpr.Range(), "Unknown attribute", fmt.Sprintf(
				"%s has no attribute %q. %s", name, key, diagnose.DidYouMean(key, slices.Collect(maps.Keys(typ.AttributeTypes())))))
			found = true
		case typ.IsMapType():
			found = undeclared(report, fmt.Sprintf("%s[%q]", name, key), item.ValueExpr, typ.ElementType()) || found
		}
	}
	return found
}
