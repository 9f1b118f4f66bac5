package render

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// block writes one change: a heading that says what happens to which address,
// the reason if there is one, and the attributes as the files write them.
func (p *printer) block(c *plan.Change) {
	p.print(p.paint(bold, p.comment()+clean(c.Addr.String())), " ", p.willInk(c), "\n")
	if c.Reason != "" {
		p.commented("("+c.Reason+")", "")
	}
	p.amendedNote(c.Addr)
	p.print(p.symbol(c.Verb), " ", string(c.Addr.Kind), " ", strconv.Quote(c.Addr.Name), " {")
	if len(c.Attrs) == 0 {
		p.print("}\n")
		return
	}
	p.print("\n")
	p.body(1, treeOf(c.Attrs), c.Verb)
	p.marked(2, p.within(blockMark(c.Verb)))
	p.print("}\n")
}

// will says what happens. A replacement that the files force reads otherwise
// than one that was asked for.
func will(c *plan.Change) string {
	if c.Verb == plan.VerbReplace {
		for i := range c.Attrs {
			if c.Attrs[i].Verb == plan.VerbReplace {
				return "must be replaced"
			}
		}
	}
	return wordsOf(c.Verb).will
}

// willInk is will with the words that cost something in red.
func (p *printer) willInk(c *plan.Change) string {
	s := will(c)
	switch c.Verb {
	case plan.VerbReplace:
		return strings.Replace(s, "replaced", p.paint(red, "replaced"), 1)
	case plan.VerbDelete:
		return strings.Replace(s, "deleted", p.paint(red, "deleted"), 1)
	case plan.VerbNone, plan.VerbCreate, plan.VerbUpdate, plan.VerbRestart:
	}
	return s
}

// node is a name in the tree that the dots of the attributes' paths make: an
// attribute, a map of attributes, or a block.
type node struct {
	name string
	form form
	attr *plan.AttrChange // of an attribute, and of a block whose presence is one
	kids []*node
}

type form uint8

const (
	formAttr  form = iota
	formMap        // name = { key = value }
	formBlock      // name { attribute = value }
)

// mapPaths are the attributes that are maps: what follows them in a path is one
// key, dots and all.
func mapPaths() [3]string { return [...]string{"environment.env", "labels", "resources.ports"} }

// flagPath is an attribute that says no more than that its block is there.
const flagPath = "environment.uv"

func treeOf(attrs []*plan.AttrChange) *node {
	root := &node{form: formBlock}
	for i := range attrs {
		a := attrs[i]
		parent, rest := root, a.Path
		for _, m := range mapPaths() {
			if key, ok := strings.CutPrefix(a.Path, m+"."); ok {
				parent, rest = root.descend(m), key
				parent.form = formMap
			}
		}
		if parent == root {
			if dot := strings.LastIndexByte(rest, '.'); dot >= 0 {
				parent, rest = root.descend(rest[:dot]), rest[dot+1:]
			}
		}
		leaf := parent.kid(rest)
		leaf.attr = a
		if a.Path == flagPath {
			leaf.form = formBlock
		}
	}
	return root
}

// descend returns the node of a dotted path of blocks, made where it is missing.
func (n *node) descend(path string) *node {
	for name := range strings.SplitSeq(path, ".") {
		n = n.kid(name)
		n.form = formBlock
	}
	return n
}

func (n *node) kid(name string) *node {
	for _, k := range slices.Backward(n.kids) { // most often it is the last
		if k.name == name {
			return k
		}
		if n.form == formMap {
			break // keys come once
		}
	}
	k := &node{name: name}
	n.kids = append(n.kids, k)
	return k
}

// mark is what happens to a node: what happens to all below it, or a change.
func (n *node) mark(verb plan.Verb) mark {
	if n.form == formAttr {
		return leafMark(n.attr, verb)
	}
	var all mark
	if n.attr != nil {
		all = leafMark(n.attr, verb)
	}
	for _, k := range n.kids {
		m := k.mark(verb)
		if all != 0 && m != all {
			return markChange
		}
		all = m
	}
	return all
}

func leafMark(a *plan.AttrChange, verb plan.Verb) mark {
	hasBefore, hasAfter := present(a.Before), present(a.After) || a.Unknown
	switch {
	case verb == plan.VerbCreate:
		return markAdd
	case verb == plan.VerbDelete:
		return markRemove
	case a.Verb == plan.VerbNone && (a.Sensitive || !a.Unknown && bytes.Equal(a.Before, a.After)):
		return markSame
	case a.Sensitive || hasBefore == hasAfter:
		return markChange
	case hasAfter:
		return markAdd
	}
	return markRemove
}

// body writes what stands between a block's braces: attributes, then blocks,
// each in the order of the plan.
func (p *printer) body(level int, n *node, verb plan.Verb) {
	var attrs, blocks []*node
	hiddenAttrs, hiddenBlocks := 0, 0
	for _, k := range n.kids {
		switch hide := !p.verbose && k.mark(verb) == markSame; {
		case hide && k.form == formBlock:
			hiddenBlocks++
		case hide:
			hiddenAttrs++
		case k.form == formBlock:
			blocks = append(blocks, k)
		default:
			attrs = append(attrs, k)
		}
	}
	p.attributes(level, attrs, verb)
	noun := "attribute"
	if n.form == formMap {
		noun = "element"
	}
	p.hidden(level, hiddenAttrs, noun)
	if len(attrs)+hiddenAttrs > 0 && len(blocks) > 0 {
		p.print("\n")
	}
	for _, k := range blocks {
		if len(k.kids) == 0 {
			p.row(level, k.mark(verb), clean(k.name)+" {}")
			continue
		}
		m := k.mark(verb)
		p.row(level, m, clean(k.name)+" {")
		p.body(level+1, k, verb)
		p.row(level, p.within(m), "}")
	}
	p.hidden(level, hiddenBlocks, "block")
}

func (p *printer) attributes(level int, attrs []*node, verb plan.Verb) {
	pad := 0
	for _, k := range attrs {
		pad = max(pad, utf8.RuneCountInString(keyName(k.name)))
	}
	for _, k := range attrs {
		name := keyName(k.name)
		head := name + strings.Repeat(" ", pad-utf8.RuneCountInString(name)) + " = "
		if k.form == formMap {
			m := k.mark(verb)
			p.row(level, m, head+"{")
			p.body(level+1, k, verb)
			p.row(level, p.within(m), "}")
			continue
		}
		p.attribute(level, head, k.attr, verb)
	}
}

func (p *printer) attribute(level int, head string, a *plan.AttrChange, verb plan.Verb) {
	t := tail{note: noteOf(a, verb)}
	before, after := valuesOf(a)
	switch leafMark(a, verb) {
	case markAdd:
		p.whole(level, markAdd, labeledValue{head, after}, t)
	case markRemove:
		t.end = " -> null"
		p.whole(level, markRemove, labeledValue{head, before}, t)
	case markSame:
		p.whole(level, markSame, labeledValue{head, after}, t)
	case markChange:
		p.changed(level, head, [2]value{before, after}, t)
	}
}

// valuesOf parses the two sides of an attribute. What is sensitive is not even
// looked at.
func valuesOf(a *plan.AttrChange) (before, after value) {
	if a.Sensitive {
		return placeholder(schema.Secret("")), placeholder(schema.Secret(""))
	}
	before, after = parse(a.Before), parse(a.After)
	if strings.HasPrefix(a.Path, "resources.ports.") {
		before, after = before.orAnyPort(), after.orAnyPort()
	}
	if a.Unknown {
		after = placeholder(schema.UnknownText())
	}
	return before, after
}

// noteOf says what an attribute causes, where that is more than its own change.
func noteOf(a *plan.AttrChange, verb plan.Verb) string {
	switch {
	case verb == plan.VerbReplace && a.Verb == plan.VerbReplace:
		return " # forces replacement"
	case verb == plan.VerbRestart && a.Verb == plan.VerbRestart:
		return " # restarts"
	}
	return ""
}

// keyName is a name as it stands before "=", in quotes where HCL needs them.
func keyName(s string) string {
	if schema.ValidName(s) {
		return s
	}
	return strconv.Quote(s)
}
