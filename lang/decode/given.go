package decode

import (
	"maps"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/eval"
)

// given returns a block, and the blocks in it, without the attributes that are null for an instance: null is the same as omitting an
// attribute, also where it matters whether an attribute stands.
func given(e *Decoder, s eval.RepetitionData, b *configs.Block) *configs.Block {
	if b == nil {
		return nil
	}
	copied := *b
	changed := false
	for name, x := range b.Attrs {
		if !mayBeNull(x) {
			continue
		}
		if out := e.Eval(x, s); out.OK && out.Value.IsKnown() && out.Value.IsNull() {
			if !changed {
				copied.Attrs = maps.Clone(b.Attrs)
			}
			changed = true
			delete(copied.Attrs, name)
		}
	}
	if blocks, inner := givenBlocks(e, s, b.Blocks); inner {
		copied.Blocks, changed = blocks, true
	}
	if !changed {
		return b
	}
	return &copied
}

// givenBlocks is given for the blocks of a block, and whether any of them differs.
func givenBlocks(e *Decoder, s eval.RepetitionData, of map[string][]*configs.Block) (map[string][]*configs.Block, bool) {
	changed := false
	blocks := make(map[string][]*configs.Block, len(of))
	for name, children := range of {
		for _, child := range children {
			c := given(e, s, child)
			changed = changed || c != child
			blocks[name] = append(blocks[name], c)
		}
	}
	return blocks, changed
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
