package configs

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// randomCalls are the functions that return another value for each instance.
func randomCalls() []string { return []string{"uuid", "bcrypt"} }

// momentaryCalls are the functions that return other values in each plan or apply, or
// render what may call one.
func momentaryCalls() []string {
	return append(randomCalls(), "timestamp", "plantimestamp", "templatefile", "templatestring")
}

// calls reports whether an expression calls one of some functions.
func calls(expr hcl.Expression, names []string) bool {
	native, is := expr.(hclsyntax.Node)
	if !is {
		return false
	}
	found := false
	_ = hclsyntax.VisitAll(native, func(n hclsyntax.Node) hcl.Diagnostics {
		call, is := n.(*hclsyntax.FunctionCallExpr)
		found = found || is && slices.Contains(names, call.Name)
		return nil
	})
	return found
}
