package eval

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/dynblock"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/language"
)

// Expanded is a block with what its dynamic blocks make in their place. Without
// any it is the block itself; false is for one that has no value.
func (e *Evaluator) Expanded(b *configs.Block, s RepetitionData) (*configs.Block, bool) {
	return dynamicBlocks{in: e, instance: s}.expanded(b)
}

// dynamicBlocks makes the blocks of one instance that dynamic blocks stand for.
type dynamicBlocks struct {
	in       *Evaluator
	instance RepetitionData
}

func (g dynamicBlocks) expanded(b *configs.Block) (*configs.Block, bool) {
	if !b.HasDynamics() {
		return b, true
	}
	c := *b
	c.Dynamics, c.Blocks = nil, map[string][]*configs.Block{}
	for name, children := range b.Blocks {
		for _, child := range children {
			made, ok := g.expanded(child)
			if !ok {
				return nil, false
			}
			c.Blocks[name] = append(c.Blocks[name], made)
		}
	}
	for _, d := range b.Dynamics {
		if !g.add(&c, d) {
			return nil, false
		}
	}
	return &c, true
}

// add adds to a block what a dynamic block makes.
func (g dynamicBlocks) add(into *configs.Block, d *configs.Dynamic) bool {
	e := g.in
	out := e.Eval(d.ForEach, g.instance)
	if !out.OK || !e.Plain(d.ForEach, out, "the blocks that there are") {
		return false
	}
	if val := out.Value; val.IsNull() || !val.CanIterateElements() {
		e.WrongValue(d.ForEach, out, fmt.Errorf("want a list, set or map, this is %s; for no block, write []", diagnose.Friendly(val)))
		return false
	}
	ctx, ok := g.contextOf(d.Content)
	if !ok {
		return false
	}
	body := dynblock.Expand(&hclsyntax.Body{Blocks: hclsyntax.Blocks{d.Valued(out.Value)}}, ctx)
	content, diags := body.Content(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: d.Type.Name}}})
	e.Extend(diags)
	if diags.HasErrors() {
		return false
	}
	for _, made := range content.Blocks {
		if len(into.Blocks[d.Type.Name]) > 0 && !d.Type.Repeated {
			e.ErrorAt(d.ForEach.Expr.Range(), "Block stands twice", fmt.Sprintf(
				"%s has one %s block at most, and this makes another one. Give for_each one element at most.", diagnose.Capitalized(into.Type.Described()), d.Type.Name))
			return false
		}
		child, ok := g.blockFrom(made.Body, d.Content, ctx)
		if !ok {
			return false
		}
		into.Blocks[d.Type.Name] = append(into.Blocks[d.Type.Name], child)
	}
	return true
}

// contextOf has the values of all references in the expressions of a block.
func (g dynamicBlocks) contextOf(b *configs.Block) (*hcl.EvalContext, bool) {
	var refs []configs.Reference
	ok := true
	b.Walk(func(x *configs.Expression) {
		refs = append(refs, x.Refs...)
		ok = ok && !x.Broken && !slices.ContainsFunc(x.Refs, func(ref configs.Reference) bool { return g.in.isFailed(ref.Symbol) })
	})
	if !ok {
		return nil, false
	}
	ctx := g.in.context(refs)
	maps.Copy(ctx.Variables, g.instance)
	return ctx, true
}

// blockFrom reads an expanded body, which was checked before it was.
func (g dynamicBlocks) blockFrom(body hcl.Body, of *configs.Block, ctx *hcl.EvalContext) (*configs.Block, bool) {
	content, diags := body.Content(schemaOf(of.Type))
	g.in.Extend(diags)
	if diags.HasErrors() {
		return nil, false
	}
	b := &configs.Block{Type: of.Type, Syntax: of.Syntax, Attrs: map[string]*configs.Expression{}, Blocks: map[string][]*configs.Block{}}
	for name, a := range content.Attributes {
		b.Attrs[name] = &configs.Expression{Name: name, Mode: of.Type.Attr(name).Mode, Expr: a.Expr, Range: a.Range, Context: ctx}
	}
	for _, inner := range content.Blocks {
		child, ok := g.blockFrom(inner.Body, &configs.Block{Type: of.Type.Variants(inner.Type)[0], Syntax: of.Syntax}, ctx)
		if !ok {
			return nil, false
		}
		b.Blocks[inner.Type] = append(b.Blocks[inner.Type], child)
	}
	return b, true
}

// schemaOf is a block type as the HCL library reads it.
func schemaOf(t *language.BlockType) *hcl.BodySchema {
	s := &hcl.BodySchema{}
	for _, a := range t.Attrs {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: a.Name, Required: a.Required})
	}
	for _, b := range t.Blocks {
		s.Blocks = append(s.Blocks, hcl.BlockHeaderSchema{Type: b.Name})
	}
	return s
}
