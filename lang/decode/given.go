package decode

import (
	"maps"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/lang/configs"
)

// given returns a block without the attributes that are null for this instance: null is the same as omitting an attribute, also
// where it matters whether an attribute stands.
func (e *JobDecoder) given(b *configs.Block) *configs.Block {
	if b == nil {
		return nil
	}
	var c *configs.Block
	for name, x := range b.Attrs {
		if !mayBeNull(x) {
			continue
		}
		if out := e.Eval(x, e.instance); out.OK && out.Value.IsKnown() && out.Value.IsNull() {
			if c == nil {
				copied := *b
				copied.Attrs = maps.Clone(b.Attrs)
				c = &copied
			}
			delete(c.Attrs, name)
		}
	}
	if c == nil {
		return b
	}
	return c
}

// mayBeNull reports whether an expression is more than a list, a text or a number.
func mayBeNull(x *configs.Expression) bool {
	switch expr := x.Expr.(type) {
	case *hclsyntax.LiteralValueExpr:
		return expr.Val.IsNull()
	case *hclsyntax.TemplateExpr, *hclsyntax.TupleConsExpr, *hclsyntax.ObjectConsExpr:
		return false
	}
	return true
}
