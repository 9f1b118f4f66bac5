package schema

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format returns the canonical layout of a file: indentation, aligned equals
// signs, spaces. Source that does not parse is returned as it is, with the
// diagnostics; the filename serves only them.
func Format(src []byte, filename string) ([]byte, hcl.Diagnostics) {
	if diags := checkNesting(src, filename); diags.HasErrors() {
		return src, diags
	}
	if _, diags := hclsyntax.ParseConfig(src, filename, hcl.InitialPos); diags.HasErrors() {
		return src, diags
	}
	return hclwrite.Format(src), nil
}
