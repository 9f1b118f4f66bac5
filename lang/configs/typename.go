package configs

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// typeFunction is the function whose last argument is a type rather than a value.
const typeFunction = "convert"

// References are what an expression refers to. Names of types, as in
// convert(var.a, list(number)), are none.
func References(expr hcl.Expression) []hcl.Traversal {
	all := expr.Variables()
	native, ok := expr.(hclsyntax.Expression)
	if !ok || len(all) == 0 {
		return all
	}
	types := namesOfTypes(native)
	if len(types) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(t hcl.Traversal) bool { return slices.Contains(types, t.SourceRange()) })
}

// namesOfTypes are the places of the words in the types of an expression.
func namesOfTypes(expr hclsyntax.Expression) []hcl.Range {
	var found []hcl.Range
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics {
		if call, is := n.(*hclsyntax.FunctionCallExpr); is && call.Name == typeFunction && len(call.Args) == 2 {
			for _, t := range call.Args[1].Variables() {
				found = append(found, t.SourceRange())
			}
		}
		return nil
	})
	return found
}
