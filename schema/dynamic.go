package schema

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/dynblock"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// dynamic is a dynamic block: one block of its type for each element of a
// collection, as the HCL library expands it.
type dynamic struct {
	src     *hclsyntax.Block
	typ     *blockType // of what it makes
	forEach *expression
	content *block // with the iterator's name allowed in its expressions
}

// settings are the types of the blocks that have no name of their own: those
// that a dynamic block can make.
func (t *blockType) settings() []*blockType {
	if t.labelCount() == 0 && t.name == "the configuration" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(t.blocks), func(b *blockType) bool { return b.label != "" })
}

// dynamicBlock checks a dynamic block as far as it can be without values.
func (r *report) dynamicBlock(parent *block, src *hclsyntax.Block) {
	d := &dynamic{src: src}
	if len(src.Labels) != 1 {
		r.errorAt(src.DefRange(), "Missing label", "A dynamic block needs one label, the type of the blocks that it makes: write dynamic \"health_check\" { … }.")
		return
	}
	settings := parent.typ.settings()
	names := make([]string, 0, len(settings))
	for _, t := range settings {
		names = append(names, t.name)
		if t.name == src.Labels[0] {
			d.typ = t
		}
	}
	if d.typ == nil {
		hint := didYouMean(src.Labels[0], names)
		if len(parent.typ.variants(src.Labels[0])) > 0 {
			hint = "It has a name, so it is repeated by count or for_each in it."
		}
		r.errorAt(src.LabelRanges[0], "Unknown block", fmt.Sprintf("A dynamic block in %s cannot make %q. %s", parent.typ.described(), src.Labels[0], hint))
		return
	}
	forEach := src.Body.Attributes["for_each"]
	if forEach == nil {
		r.errorAt(src.DefRange(), "Missing attribute", "A dynamic block needs for_each: one block is made for each element.")
		return
	}
	d.forEach = newExpression(forEach, modeValue)
	if r.dynamicContent(d) {
		parent.dynamics = append(parent.dynamics, d)
	}
}

// dynamicContent reads the content and the name of the iterator.
func (r *report) dynamicContent(d *dynamic) bool {
	iterator := d.typ.name
	for _, a := range sortedAttributes(d.src.Body) {
		switch a.Name {
		case "for_each":
		case "iterator":
			if iterator = hcl.ExprAsKeyword(a.Expr); iterator == "" {
				r.errorAt(a.Expr.Range(), "Invalid value for iterator", "Write a plain name, such as iterator = port.")
				return false
			}
		default:
			r.errorAt(a.NameRange, "Unknown attribute", fmt.Sprintf("A dynamic block has no attribute %q. %s", a.Name, didYouMean(a.Name, []string{"for_each", "iterator", "content"})))
			return false
		}
	}
	for _, b := range d.src.Body.Blocks {
		if b.Type != "content" || len(b.Labels) > 0 || d.content != nil {
			r.errorAt(b.DefRange(), "Unknown block", "A dynamic block has one block, content { … }: what stands in each block that it makes.")
			return false
		}
		d.content = r.structure([]*hclsyntax.Body{b.Body}, d.typ, b)
	}
	if d.content == nil {
		r.errorAt(d.src.DefRange(), "Missing block", "A dynamic block needs content { … }: what stands in each block that it makes.")
		return false
	}
	d.content.walk(func(x *expression) { x.iterators = append(x.iterators, iterator) })
	return true
}

// hasDynamics reports whether blocks in b are known only when evaluated.
func (b *block) hasDynamics() bool {
	if b == nil {
		return false
	}
	if len(b.dynamics) > 0 {
		return true
	}
	for _, children := range b.blocks {
		if slices.ContainsFunc(children, (*block).hasDynamics) {
			return true
		}
	}
	return false
}

// expanded is a block with what its dynamic blocks make in their place. Without
// any it is the block itself; false is for one that has no value.
func (e *evaluator) expanded(b *block, s scope) (*block, bool) {
	if !b.hasDynamics() {
		return b, true
	}
	c := *b
	c.dynamics, c.blocks = nil, map[string][]*block{}
	for name, children := range b.blocks {
		for _, child := range children {
			made, ok := e.expanded(child, s)
			if !ok {
				return nil, false
			}
			c.blocks[name] = append(c.blocks[name], made)
		}
	}
	for _, d := range b.dynamics {
		if !e.expandDynamic(&c, d, s) {
			return nil, false
		}
	}
	return &c, true
}

// expandDynamic adds to a block what a dynamic block makes.
func (e *evaluator) expandDynamic(into *block, d *dynamic, s scope) bool {
	out := e.eval(d.forEach, s)
	if !out.ok || !e.plain(d.forEach, out, "the blocks that there are") {
		return false
	}
	if val := out.val; val.IsNull() || !val.CanIterateElements() {
		e.wrongValue(d.forEach, out, fmt.Errorf("want a list, set or map, this is %s; for no block, write []", friendly(val)))
		return false
	}
	ctx, ok := e.contextOf(d.content, s)
	if !ok {
		return false
	}
	body := dynblock.Expand(&hclsyntax.Body{Blocks: hclsyntax.Blocks{d.valued(out.val)}}, ctx)
	content, diags := body.Content(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: d.typ.name}}})
	e.extend(diags)
	if diags.HasErrors() {
		return false
	}
	for _, made := range content.Blocks {
		if len(into.blocks[d.typ.name]) > 0 && !d.typ.repeated {
			e.errorAt(d.forEach.expr.Range(), "Block stands twice", fmt.Sprintf(
				"%s has one %s block at most, and this makes another one. Give for_each one element at most.", capitalized(into.typ.described()), d.typ.name))
			return false
		}
		child, ok := e.blockFrom(made.Body, d.content, ctx)
		if !ok {
			return false
		}
		into.blocks[d.typ.name] = append(into.blocks[d.typ.name], child)
	}
	return true
}

// valued is the source with for_each evaluated.
func (d *dynamic) valued(elements cty.Value) *hclsyntax.Block {
	body := *d.src.Body
	body.Attributes = maps.Clone(body.Attributes)
	each := *body.Attributes["for_each"]
	each.Expr = &hclsyntax.LiteralValueExpr{Val: elements, SrcRange: each.Expr.Range()}
	body.Attributes["for_each"] = &each
	src := *d.src
	src.Body = &body
	return &src
}

// contextOf has everything that the expressions of a block refer to.
func (e *evaluator) contextOf(b *block, s scope) (*hcl.EvalContext, bool) {
	var refs []reference
	ok := true
	b.walk(func(x *expression) {
		refs = append(refs, x.refs...)
		ok = ok && !x.broken && !slices.ContainsFunc(x.refs, func(ref reference) bool { return e.isFailed(ref.symbol) })
	})
	if !ok {
		return nil, false
	}
	ctx := e.context(refs)
	maps.Copy(ctx.Variables, s)
	return ctx, true
}

// blockFrom reads an expanded body, which was checked before it was.
func (e *evaluator) blockFrom(body hcl.Body, of *block, ctx *hcl.EvalContext) (*block, bool) {
	content, diags := body.Content(schemaOf(of.typ))
	e.extend(diags)
	if diags.HasErrors() {
		return nil, false
	}
	b := &block{typ: of.typ, src: of.src, attrs: map[string]*expression{}, blocks: map[string][]*block{}}
	for name, a := range content.Attributes {
		b.attrs[name] = &expression{name: name, mode: of.typ.attr(name).mode, expr: a.Expr, rng: a.Range, ctx: ctx}
	}
	for _, inner := range content.Blocks {
		child, ok := e.blockFrom(inner.Body, &block{typ: of.typ.variants(inner.Type)[0], src: of.src}, ctx)
		if !ok {
			return nil, false
		}
		b.blocks[inner.Type] = append(b.blocks[inner.Type], child)
	}
	return b, true
}

// schemaOf is a block type as the HCL library reads it.
func schemaOf(t *blockType) *hcl.BodySchema {
	s := &hcl.BodySchema{}
	for _, a := range t.attrs {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: a.name, Required: a.required})
	}
	for _, b := range t.blocks {
		s.Blocks = append(s.Blocks, hcl.BlockHeaderSchema{Type: b.name})
	}
	return s
}
