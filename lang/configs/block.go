package configs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/schema"
)

// Block is a block of the source that was checked against its type: it holds
// only attributes and blocks that the type knows.
type Block struct {
	Type   *language.BlockType
	Syntax *hclsyntax.Block // nil for the configuration as a whole
	Name   string           // the label that names it, "" for a block without one
	Attrs  map[string]*Expression
	Blocks map[string][]*Block
	// dynamics stand for blocks that are known only when they are evaluated.
	Dynamics []*Dynamic
}

// Child returns the block of a name that may stand once, nil where it does not stand.
func (b *Block) Child(name string) *Block {
	if b == nil || len(b.Blocks[name]) == 0 {
		return nil
	}
	return b.Blocks[name][0]
}

// Children returns the blocks of a name.
func (b *Block) Children(name string) []*Block {
	if b == nil {
		return nil
	}
	return b.Blocks[name]
}

// Attr returns an attribute, nil where it does not stand.
func (b *Block) Attr(name string) *Expression {
	if b == nil {
		return nil
	}
	return b.Attrs[name]
}

// Range is where the block's header stands.
func (b *Block) Range() hcl.Range { return b.Syntax.DefRange() }

// Walk calls visit for every expression of the block and the blocks in it, in
// the order in which the type lists them.
func (b *Block) Walk(visit func(*Expression)) {
	if b == nil {
		return
	}
	for _, a := range b.Type.Attrs {
		if x := b.Attrs[a.Name]; x != nil {
			visit(x)
		}
	}
	for _, name := range slices.Compact(b.Type.BlockNames()) {
		for _, child := range b.Blocks[name] {
			child.Walk(visit)
		}
	}
	if b.Type.Open {
		b.walkOpen(visit)
	}
	for _, d := range b.Dynamics {
		visit(d.ForEach)
		d.Content.Walk(visit)
	}
}

// walkOpen visits the attributes that the type does not name.
func (b *Block) walkOpen(visit func(*Expression)) {
	for _, name := range slices.Sorted(maps.Keys(b.Attrs)) {
		if b.Type.Attr(name) == nil {
			visit(b.Attrs[name])
		}
	}
}

// Checker reads the blocks of files and reports what is wrong with them.
type Checker struct{ *diagnose.Report }

// Structure checks bodies against a block type and returns what holds; the
// bodies of several files make one.
func (r Checker) Structure(bodies []*hclsyntax.Body, typ *language.BlockType, src *hclsyntax.Block) *Block {
	b := &Block{Type: typ, Syntax: src, Attrs: map[string]*Expression{}, Blocks: map[string][]*Block{}}
	for _, body := range bodies {
		for _, a := range sortedAttributes(body) {
			r.attribute(b, a)
		}
		for _, child := range body.Blocks {
			if src == nil && r.Canceled() {
				break
			}
			r.childBlock(b, child)
		}
	}
	for i := range typ.Attrs {
		a := &typ.Attrs[i]
		if a.Required && b.Attrs[a.Name] == nil && src != nil && !attempted(bodies, typ, a.Name) {
			r.ErrorAt(src.DefRange(), "Missing attribute", fmt.Sprintf(
				"%s needs the attribute %q (%s): %s.", diagnose.Capitalized(typ.Described()), a.Name, a.Type, a.Doc))
		}
	}
	return b
}

// attempted reports whether an attribute was written as a block by mistake, or
// misspelt, which is reported already.
func attempted(bodies []*hclsyntax.Body, typ *language.BlockType, name string) bool {
	for _, body := range bodies {
		for _, b := range body.Blocks {
			if b.Type == name {
				return true
			}
		}
		for written := range body.Attributes {
			if !typ.Open && typ.Attr(written) == nil && schema.Nearest(written, typ.AttrNames()) == name {
				return true
			}
		}
	}
	return false
}

func sortedAttributes(body *hclsyntax.Body) []*hclsyntax.Attribute {
	attrs := make([]*hclsyntax.Attribute, 0, len(body.Attributes))
	for _, a := range body.Attributes {
		attrs = append(attrs, a)
	}
	slices.SortFunc(attrs, func(a, b *hclsyntax.Attribute) int { return a.SrcRange.Start.Byte - b.SrcRange.Start.Byte })
	return attrs
}

func (r Checker) attribute(b *Block, a *hclsyntax.Attribute) {
	known := b.Type.Attr(a.Name)
	switch {
	case known == nil && b.Type.Open:
		b.Attrs[a.Name] = newExpression(a, language.ModeValue)
	case known != nil:
		b.Attrs[a.Name] = newExpression(a, known.Mode)
	case len(b.Type.Variants(a.Name)) > 0:
		r.ErrorAt(a.NameRange, "Block written as attribute", fmt.Sprintf(
			"%q is a block in %s: write %s, without an equals sign.", a.Name, b.Type.Described(), language.Header(b.Type.Variants(a.Name)[0])))
	case len(b.Type.Attrs) == 0:
		r.ErrorAt(a.NameRange, "Unknown attribute", fmt.Sprintf(
			"There is no attribute %q here. A value with a name of its own stands in locals { } or in a variable block.%s",
			a.Name, language.BlockHint(a.Name, b.Type)))
	default:
		r.ErrorAt(a.NameRange, "Unknown attribute", strings.TrimSpace(fmt.Sprintf(
			"%s has no attribute %q. %s", diagnose.Capitalized(b.Type.Described()), a.Name, b.Type.Instead(a.Name))))
	}
}

func (r Checker) childBlock(parent *Block, src *hclsyntax.Block) {
	candidates := parent.Type.Variants(src.Type)
	if src.Type == "dynamic" && len(parent.Type.Settings()) > 0 {
		r.dynamicBlock(parent, src)
		return
	}
	if len(candidates) == 0 {
		r.unknownBlock(parent.Type, src)
		return
	}
	typ, name, ok := r.labels(candidates, src)
	if !ok {
		return
	}
	siblings := parent.Blocks[src.Type]
	if !typ.Repeated && typ.Variant == "" && len(siblings) > 0 {
		r.ErrorAt(src.DefRange(), "Block stands twice", fmt.Sprintf(
			"%s has one %s block at most; the first is at %s. Put both into one.",
			diagnose.Capitalized(parent.Type.Described()), src.Type, diagnose.Place(siblings[0].Range())))
		return
	}
	b := r.Structure([]*hclsyntax.Body{src.Body}, typ, src)
	b.Name = name
	parent.Blocks[src.Type] = append(siblings, b)
}

func (r Checker) unknownBlock(parent *language.BlockType, src *hclsyntax.Block) {
	if a := parent.Attr(src.Type); a != nil {
		r.ErrorAt(src.DefRange(), "Attribute written as block", fmt.Sprintf(
			"%q is an attribute of %s (%s): write %s = …", src.Type, parent.Described(), a.Type, src.Type))
		return
	}
	detail := fmt.Sprintf("%s has no block %q. ", diagnose.Capitalized(parent.Described()), src.Type)
	detail += parent.BlockInstead(src.Type, src.Labels)
	r.ErrorAt(src.TypeRange, "Unknown block", strings.TrimSpace(detail))
}

// labels checks the labels of a block and chooses its type by them.
func (r Checker) labels(candidates []*language.BlockType, src *hclsyntax.Block) (*language.BlockType, string, bool) {
	typ := candidates[0]
	switch {
	case typ.Label == "" && len(src.Labels) > 0:
		r.ErrorAt(src.LabelRanges[0], "Unexpected label", fmt.Sprintf("%s has no label: write %s.", diagnose.Capitalized(diagnose.Article(src.Type)), language.Header(typ)))
		return nil, "", false
	case typ.Label == "":
		return typ, "", true
	case len(src.Labels) < typ.LabelCount():
		r.ErrorAt(src.DefRange(), "Missing label", fmt.Sprintf("%s needs %s: write %s.", diagnose.Capitalized(diagnose.Article(src.Type)), strings.Replace(language.LabelCount(typ), "one", "a", 1), language.Header(typ)))
		return nil, "", false
	case len(src.Labels) > typ.LabelCount():
		r.ErrorAt(src.LabelRanges[typ.LabelCount()], "Unexpected label", fmt.Sprintf("%s has %s only: write %s.", diagnose.Capitalized(diagnose.Article(src.Type)), language.LabelCount(typ), language.Header(typ)))
		return nil, "", false
	}
	label := src.Labels[0]
	if typ.Variant != "" {
		i := slices.IndexFunc(candidates, func(t *language.BlockType) bool { return t.Variant == label })
		if i < 0 {
			names := make([]string, 0, len(candidates))
			for _, c := range candidates {
				names = append(names, c.Variant)
			}
			r.ErrorAt(src.LabelRanges[0], "Unknown label", fmt.Sprintf("There is no %s %q. %s", src.Type, label, diagnose.DidYouMean(label, names)))
			return nil, "", false
		}
		if typ = candidates[i]; typ.Label2 == "" {
			return typ, label, true
		}
		label = src.Labels[1]
	}
	if !schema.ValidName(label) && (!typ.FreeLabel || label == "") {
		r.ErrorAt(src.LabelRanges[len(src.Labels)-1], "Invalid name", fmt.Sprintf(
			"%q cannot name %s: a name is a letter or underscore, then letters, digits, underscores and hyphens, at most 63 in all.", label, diagnose.Article(src.Type)))
		return nil, "", false
	}
	return typ, label, true
}
