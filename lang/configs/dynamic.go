package configs

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/language"
)

// Dynamic is a dynamic block: one block of its type for each element of a
// collection, as the HCL library expands it.
type Dynamic struct {
	src     *hclsyntax.Block
	Type    *language.BlockType // of what it makes
	ForEach *Expression
	Content *Block // with the iterator's name allowed in its expressions
}

// dynamicBlock checks a dynamic block as far as it can be without values.
func (r Checker) dynamicBlock(parent *Block, src *hclsyntax.Block) {
	d := &Dynamic{src: src}
	if len(src.Labels) != 1 {
		r.ErrorAt(src.DefRange(), "Missing label", "A dynamic block needs one label, the type of the blocks that it makes: write dynamic \"health_check\" { … }.")
		return
	}
	settings := parent.Type.Settings()
	names := make([]string, 0, len(settings))
	for _, t := range settings {
		names = append(names, t.Name)
		if t.Name == src.Labels[0] {
			d.Type = t
		}
	}
	if d.Type == nil {
		hint := diagnose.DidYouMean(src.Labels[0], names)
		if len(parent.Type.Variants(src.Labels[0])) > 0 {
			hint = "It has a name, so it is repeated by count or for_each in it."
		}
		r.ErrorAt(src.LabelRanges[0], "Unknown block", fmt.Sprintf("A dynamic block in %s cannot make %q. %s", parent.Type.Described(), src.Labels[0], hint))
		return
	}
	forEach := src.Body.Attributes["for_each"]
	if forEach == nil {
		r.ErrorAt(src.DefRange(), "Missing attribute", "A dynamic block needs for_each: one block is made for each element.")
		return
	}
	d.ForEach = newExpression(forEach, language.ModeValue)
	if r.dynamicContent(d) {
		parent.Dynamics = append(parent.Dynamics, d)
	}
}

// dynamicContent reads the content and the name of the iterator.
func (r Checker) dynamicContent(d *Dynamic) bool {
	iterator := d.Type.Name
	for _, a := range sortedAttributes(d.src.Body) {
		switch a.Name {
		case "for_each":
		case "iterator":
			if iterator = hcl.ExprAsKeyword(a.Expr); iterator == "" {
				r.ErrorAt(a.Expr.Range(), "Invalid value for iterator", "Write a plain name, such as iterator = port.")
				return false
			}
		default:
			r.ErrorAt(a.NameRange, "Unknown attribute", fmt.Sprintf("A dynamic block has no attribute %q. %s", a.Name, diagnose.DidYouMean(a.Name, []string{"for_each", "iterator", "content"})))
			return false
		}
	}
	for _, b := range d.src.Body.Blocks {
		if b.Type != "content" || len(b.Labels) > 0 || d.Content != nil {
			r.ErrorAt(b.DefRange(), "Unknown block", "A dynamic block has one block, content { … }: what stands in each block that it makes.")
			return false
		}
		d.Content = r.Structure([]*hclsyntax.Body{b.Body}, d.Type, b)
	}
	if d.Content == nil {
		r.ErrorAt(d.src.DefRange(), "Missing block", "A dynamic block needs content { … }: what stands in each block that it makes.")
		return false
	}
	d.Content.Walk(func(x *Expression) { x.Iterators = append(x.Iterators, iterator) })
	return true
}

// HasDynamics reports whether blocks in b are known only when evaluated.
func (b *Block) HasDynamics() bool {
	if b == nil {
		return false
	}
	if len(b.Dynamics) > 0 {
		return true
	}
	for _, children := range b.Blocks {
		if slices.ContainsFunc(children, (*Block).HasDynamics) {
			return true
		}
	}
	return false
}

// Valued is the source with for_each evaluated.
func (d *Dynamic) Valued(elements cty.Value) *hclsyntax.Block {
	body := *d.src.Body
	body.Attributes = maps.Clone(body.Attributes)
	each := *body.Attributes["for_each"]
	each.Expr = &hclsyntax.LiteralValueExpr{Val: elements, SrcRange: each.Expr.Range()}
	body.Attributes["for_each"] = &each
	src := *d.src
	src.Body = &body
	return &src
}
