package eval

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/diagnose"
)

// bare is an expression without the parentheses around it.
func bare(expr hcl.Expression) hcl.Expression {
	for {
		inner, ok := expr.(*hclsyntax.ParenthesesExpr)
		if !ok {
			return expr
		}
		expr = inner.Expression
	}
}

// writtenKey is the name of an attribute of an object that is written out, "" if it is computed.
func writtenKey(item hclsyntax.ObjectConsItem) string {
	key, diags := item.KeyExpr.Value(nil)
	if diags.HasErrors() || !key.IsKnown() || key.IsNull() || key.Type() != cty.String {
		return ""
	}
	return key.AsString()
}

// within is where a value stands below objects and lists that are written out, as far as the path can be followed: the range of expr
// for a path whose first step is not written.
func within(expr hcl.Expression, path []string) hcl.Range {
	rng := expr.Range()
	for _, name := range path {
		switch written := bare(expr).(type) {
		case *hclsyntax.ObjectConsExpr:
			i := slices.IndexFunc(written.Items, func(item hclsyntax.ObjectConsItem) bool { return writtenKey(item) == name })
			if i < 0 {
				return rng
			}
			item := written.Items[i]
			expr, rng = item.ValueExpr, hcl.RangeBetween(item.KeyExpr.Range(), item.ValueExpr.Range())
		case *hclsyntax.TupleConsExpr:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(written.Exprs) {
				return rng
			}
			expr = written.Exprs[i]
			rng = expr.Range()
		default:
			return rng
		}
	}
	return rng
}

// stepsOf are the names of the attributes, keys and indices in a path of a value.
func stepsOf(path cty.Path) []string {
	var names []string
	for _, step := range path {
		switch step := step.(type) {
		case cty.GetAttrStep:
			names = append(names, step.Name)
		case cty.IndexStep:
			name, ok := keyText(step.Key)
			if !ok {
				return names
			}
			names = append(names, name)
		}
	}
	return names
}

// keyText is a key of a map or an index of a list as a text.
func keyText(key cty.Value) (string, bool) {
	if !key.IsKnown() || key.IsNull() || key.IsMarked() {
		return "", false
	}
	switch key.Type() {
	case cty.String:
		return key.AsString(), true
	case cty.Number:
		return key.AsBigFloat().Text('f', -1), true
	}
	return "", false
}

// readOf is the longest path below var.name that an expression reads, of several the first: ["a", "0"] for var.name.a[0].
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
			text, ok := stepText(step)
			if !ok {
				break
			}
			path = append(path, text)
		}
		if len(path) > len(longest) {
			longest = path
		}
	}
	return longest
}

// stepText is a step of a reference as a text.
func stepText(step hcl.Traverser) (string, bool) {
	switch step := step.(type) {
	case hcl.TraverseAttr:
		return step.Name, true
	case hcl.TraverseIndex:
		return keyText(step.Key)
	}
	return "", false
}

// undeclared reports the attributes of objects that are written out and that their type does not have: a conversion would drop them.
// What comes from elsewhere, of which the author of the call may need more than the module does, is not checked.
func undeclared(report Reporter, name string, expr hcl.Expression, typ cty.Type) bool {
	found := false
	switch written := bare(expr).(type) {
	case *hclsyntax.ObjectConsExpr:
		for _, item := range written.Items {
			key := writtenKey(item)
			switch {
			case key == "":
			case typ.IsObjectType() && typ.HasAttribute(key):
				found = undeclared(report, name+"."+key, item.ValueExpr, typ.AttributeType(key)) || found
			case typ.IsObjectType():
				hint := diagnose.DidYouMean(key, slices.Collect(maps.Keys(typ.AttributeTypes())))
				report.ErrorAt(item.KeyExpr.Range(), "Unknown attribute", strings.TrimSpace(fmt.Sprintf("%s has no attribute %q. %s", name, key, hint)))
				found = true
			case typ.IsMapType():
				found = undeclared(report, fmt.Sprintf("%s[%q]", name, key), item.ValueExpr, typ.ElementType()) || found
			}
		}
	case *hclsyntax.TupleConsExpr:
		for i, item := range written.Exprs {
			switch {
			case typ.IsListType() || typ.IsSetType():
				found = undeclared(report, fmt.Sprintf("%s[%d]", name, i), item, typ.ElementType()) || found
			case typ.IsTupleType() && i < typ.Length():
				found = undeclared(report, fmt.Sprintf("%s[%d]", name, i), item, typ.TupleElementType(i)) || found
			}
		}
	}
	return found
}
