package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// block is a block of the source that was checked against its type: it holds
// only attributes and blocks that the type knows.
type block struct {
	typ    *blockType
	src    *hclsyntax.Block // nil for the configuration as a whole
	name   string           // the label that names it, "" for a block without one
	attrs  map[string]*expression
	blocks map[string][]*block
	// dynamics stand for blocks that are known only when they are evaluated.
	dynamics []*dynamic
}

// child returns the block of a name that may stand once, nil where it does not stand.
func (b *block) child(name string) *block {
	if b == nil || len(b.blocks[name]) == 0 {
		return nil
	}
	return b.blocks[name][0]
}

// children returns the blocks of a name.
func (b *block) children(name string) []*block {
	if b == nil {
		return nil
	}
	return b.blocks[name]
}

// attr returns an attribute, nil where it does not stand.
func (b *block) attr(name string) *expression {
	if b == nil {
		return nil
	}
	return b.attrs[name]
}

// rng is where the block's header stands.
func (b *block) rng() hcl.Range { return b.src.DefRange() }

// walk calls visit for every expression of the block and the blocks in it, in
// the order in which the type lists them.
func (b *block) walk(visit func(*expression)) {
	if b == nil {
		return
	}
	for _, a := range b.typ.attrs {
		if x := b.attrs[a.name]; x != nil {
			visit(x)
		}
	}
	for _, name := range slices.Compact(b.typ.blockNames()) {
		for _, child := range b.blocks[name] {
			child.walk(visit)
		}
	}
	if b.typ.open {
		b.walkOpen(visit)
	}
	for _, d := range b.dynamics {
		visit(d.forEach)
		d.content.walk(visit)
	}
}

// walkOpen visits the attributes that the type does not name.
func (b *block) walkOpen(visit func(*expression)) {
	for _, name := range sortedKeys(b.attrs) {
		if b.typ.attr(name) == nil {
			visit(b.attrs[name])
		}
	}
}

// structure checks bodies against a block type and returns what holds; the
// bodies of several files make one.
func (r *report) structure(bodies []*hclsyntax.Body, typ *blockType, src *hclsyntax.Block) *block {
	b := &block{typ: typ, src: src, attrs: map[string]*expression{}, blocks: map[string][]*block{}}
	for _, body := range bodies {
		for _, a := range sortedAttributes(body) {
			r.attribute(b, a)
		}
		for _, child := range body.Blocks {
			r.childBlock(b, child)
		}
	}
	for i := range typ.attrs {
		a := &typ.attrs[i]
		if a.required && b.attrs[a.name] == nil && src != nil && !attempted(bodies, typ, a.name) {
			r.errorAt(src.DefRange(), "Missing attribute", fmt.Sprintf(
				"%s needs the attribute %q (%s): %s.", capitalized(typ.described()), a.name, a.typ, a.doc))
		}
	}
	return b
}

// attempted reports whether an attribute was written as a block by mistake, or
// misspelt, which is told already.
func attempted(bodies []*hclsyntax.Body, typ *blockType, name string) bool {
	for _, body := range bodies {
		for _, b := range body.Blocks {
			if b.Type == name {
				return true
			}
		}
		for written := range body.Attributes {
			if !typ.open && typ.attr(written) == nil && Nearest(written, typ.attrNames()) == name {
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

// described is the block in words, "a job block"; the configuration has its own.
func (t *blockType) described() string {
	if strings.Contains(t.name, " ") {
		return t.name
	}
	if t.variant != "" {
		return fmt.Sprintf("%s %q", t.name, t.variant)
	}
	return article(t.name) + " block"
}

func (r *report) attribute(b *block, a *hclsyntax.Attribute) {
	known := b.typ.attr(a.Name)
	switch {
	case known == nil && b.typ.open:
		b.attrs[a.Name] = newExpression(a, modeValue)
	case known != nil:
		b.attrs[a.Name] = newExpression(a, known.mode)
	case len(b.typ.variants(a.Name)) > 0:
		r.errorAt(a.NameRange, "Block written as attribute", fmt.Sprintf(
			"%q is a block in %s: write %s, without an equals sign.", a.Name, b.typ.described(), header(b.typ.variants(a.Name)[0])))
	case len(b.typ.attrs) == 0:
		r.errorAt(a.NameRange, "Unknown attribute", fmt.Sprintf(
			"There is no attribute %q here. A value with a name of its own stands in locals { } or in a variable block.%s",
			a.Name, blockHint(a.Name, b.typ)))
	default:
		r.errorAt(a.NameRange, "Unknown attribute", strings.TrimSpace(fmt.Sprintf(
			"%s has no attribute %q. %s", capitalized(b.typ.described()), a.Name, b.typ.instead(a.Name))))
	}
}

// instead suggests what to write for an attribute that the block has not.
// Jobs and services have the same meaning under different names.
func (t *blockType) instead(name string) string {
	switch {
	case name == "replicas" && t.attr("count") != nil:
		return `Use "count": how many instances.`
	case (name == "count" || name == "for_each") && t.attr("replicas") != nil:
		return `Use "replicas": how many, told apart by count.index.`
	}
	return didYouMean(name, append(t.attrNames(), t.blockNames()...))
}

func blockHint(name string, t *blockType) string {
	if near := Nearest(name, t.blockNames()); near != "" {
		return fmt.Sprintf(" Did you mean the block %s?", header(t.variants(near)[0]))
	}
	return ""
}

// header is how a block of a type is written.
func header(t *blockType) string {
	switch {
	case t.label2 != "":
		return fmt.Sprintf("%s %q %q { … }", t.name, t.variant, t.label2)
	case t.variant != "":
		return fmt.Sprintf("%s %q { … }", t.name, t.variant)
	case t.label != "":
		return fmt.Sprintf("%s %q { … }", t.name, t.label)
	}
	return t.name + " { … }"
}

func (r *report) childBlock(parent *block, src *hclsyntax.Block) {
	candidates := parent.typ.variants(src.Type)
	if src.Type == "dynamic" && len(parent.typ.settings()) > 0 {
		r.dynamicBlock(parent, src)
		return
	}
	if len(candidates) == 0 {
		r.unknownBlock(parent.typ, src)
		return
	}
	typ, name, ok := r.labels(candidates, src)
	if !ok {
		return
	}
	siblings := parent.blocks[src.Type]
	if !typ.repeated && typ.variant == "" && len(siblings) > 0 {
		r.errorAt(src.DefRange(), "Block stands twice", fmt.Sprintf(
			"%s has one %s block at most; the first is at %s. Put both into one.",
			capitalized(parent.typ.described()), src.Type, place(siblings[0].rng())))
		return
	}
	b := r.structure([]*hclsyntax.Body{src.Body}, typ, src)
	b.name = name
	parent.blocks[src.Type] = append(siblings, b)
}

func (r *report) unknownBlock(parent *blockType, src *hclsyntax.Block) {
	if a := parent.attr(src.Type); a != nil {
		r.errorAt(src.DefRange(), "Attribute written as block", fmt.Sprintf(
			"%q is an attribute of %s (%s): write %s = …", src.Type, parent.described(), a.typ, src.Type))
		return
	}
	detail := fmt.Sprintf("%s has no block %q. ", capitalized(parent.described()), src.Type)
	switch {
	case src.Type == "dynamic":
		detail += "A block with a name of its own is repeated by count or for_each in it."
	case src.Type == actorBlock && parent.name == string(KindJob):
		detail += "Actors are hosted by services: write actor_service instead of job."
	case Nearest(src.Type, parent.blockNames()) == "" && Nearest(src.Type, parent.attrNames()) != "":
		detail += fmt.Sprintf("Did you mean the attribute %q?", Nearest(src.Type, parent.attrNames()))
	case len(parent.blocks) == 0:
		detail += "No block stands in it."
	default:
		detail += didYouMean(src.Type, parent.blockNames())
	}
	r.errorAt(src.TypeRange, "Unknown block", strings.TrimSpace(detail))
}

// labels checks the labels of a block and chooses its type by them.
func (r *report) labels(candidates []*blockType, src *hclsyntax.Block) (*blockType, string, bool) {
	typ := candidates[0]
	switch {
	case typ.label == "" && len(src.Labels) > 0:
		r.errorAt(src.LabelRanges[0], "Unexpected label", fmt.Sprintf("%s has no label: write %s.", capitalized(article(src.Type)), header(typ)))
		return nil, "", false
	case typ.label == "":
		return typ, "", true
	case len(src.Labels) < typ.labelCount():
		r.errorAt(src.DefRange(), "Missing label", fmt.Sprintf("%s needs %s: write %s.", capitalized(article(src.Type)), strings.Replace(labelCount(typ), "one", "a", 1), header(typ)))
		return nil, "", false
	case len(src.Labels) > typ.labelCount():
		r.errorAt(src.LabelRanges[typ.labelCount()], "Unexpected label", fmt.Sprintf("%s has %s only: write %s.", capitalized(article(src.Type)), labelCount(typ), header(typ)))
		return nil, "", false
	}
	label := src.Labels[0]
	if typ.variant != "" {
		i := slices.IndexFunc(candidates, func(t *blockType) bool { return t.variant == label })
		if i < 0 {
			names := make([]string, 0, len(candidates))
			for _, c := range candidates {
				names = append(names, c.variant)
			}
			r.errorAt(src.LabelRanges[0], "Unknown label", fmt.Sprintf("There is no %s %q. %s", src.Type, label, didYouMean(label, names)))
			return nil, "", false
		}
		if typ = candidates[i]; typ.label2 == "" {
			return typ, label, true
		}
		label = src.Labels[1]
	}
	if !ValidName(label) && (!typ.freeLabel || label == "") {
		r.errorAt(src.LabelRanges[len(src.Labels)-1], "Invalid name", fmt.Sprintf(
			"%q cannot name %s: a name is a letter or underscore, then letters, digits, underscores and hyphens, at most 63 in all.", label, article(src.Type)))
		return nil, "", false
	}
	return typ, label, true
}

func (t *blockType) labelCount() int {
	switch {
	case t.label2 != "":
		return 2
	case t.label != "":
		return 1
	}
	return 0
}

func labelCount(t *blockType) string {
	if t.labelCount() == 2 {
		return "two labels"
	}
	return "one label"
}

func capitalized(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
