package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/lang/outline"
)

// ItemKind is a closed set of what is offered.
type ItemKind int

// The kinds.
const (
	ItemBlock ItemKind = iota
	ItemAttribute
	ItemValue
	ItemReference
	ItemFunction
)

// Item is one offer of a completion.
type Item struct {
	Kind   ItemKind
	Label  string
	Detail string
	Doc    string // Markdown
	Insert string // in place of the bytes from From to To; a snippet where Snippet is set
	Rank   int    // the lower is offered first

	Snippet  bool
	From, To int
}

// maxItems is how many items one completion has. An editor asks again as more is typed.
const maxItems = 200

// Complete returns what may stand at the offset, and whether there is more.
func (q *Query) Complete() (items []Item, more bool) {
	text, start := q.part()
	at := q.Offset - start
	c := contextAt(text, at)
	t := c.table(q.root())
	from, to := word(text, at)
	prefix := string(text[from:at])
	switch c.place {
	case placeNone:
	case placeName:
		if len(stepsBefore(text, from)) == 0 {
			items = q.names(&c, t)
		}
	case placeLabel:
		prefix, from = stringPrefix(text, at)
		to = at
		items = labels(c.table(q.root()), c.line)
	case placeString:
		prefix, from = stringPrefix(text, at)
		to = at
		items = q.texts(&c, t)
	case placeValue:
		items = q.values(&c, t, stepsBefore(text, from))
	}
	items = slices.DeleteFunc(items, func(i Item) bool { return !hasPrefix(i.Label, prefix) })
	slices.SortStableFunc(items, func(a, b Item) int { return a.Rank - b.Rank })
	if more = len(items) > maxItems; more {
		items = items[:maxItems]
	}
	for i := range items {
		items[i].From, items[i].To = start+from, start+to
		if items[i].Insert == "" {
			items[i].Insert = items[i].Label
		}
	}
	return items, more
}

// names are the attributes and blocks that a block may have and does not have yet.
func (q *Query) names(c *context, t *language.BlockType) []Item {
	if t == nil {
		return nil
	}
	block := c.blocks[len(c.blocks)-1]
	var items []Item
	for i := range t.Attrs {
		a := &t.Attrs[i]
		if block.written[a.Name] {
			continue
		}
		rank := 1
		if a.Required {
			rank = 0
		}
		items = append(items, Item{
			Kind: ItemAttribute, Label: a.Name, Detail: a.Type, Doc: attributeDoc(a), Rank: rank,
			Insert: a.Name + " = " + skeleton(a), Snippet: true,
		})
	}
	items = append(items, q.arguments(&block)...)
	for _, b := range t.Blocks {
		if b.Repeated || b.Variant != "" || !block.written[b.Name] {
			items = append(items, Item{
				Kind: ItemBlock, Label: b.Name, Detail: language.Header(b), Doc: b.Doc, Rank: 2,
				Insert: blockSnippet(b), Snippet: true,
			})
		}
	}
	if len(t.Settings()) > 0 {
		items = append(items, Item{
			Kind: ItemBlock, Label: "dynamic", Detail: "dynamic \"BLOCK\" { … }", Doc: "blocks for each element of for_each", Rank: 2,
			Insert: "dynamic \"${1:block}\" {\n  for_each = $2\n  content {\n    $0\n  }\n}", Snippet: true,
		})
	}
	return items
}

// arguments are the variables of the module that a block calls.
func (q *Query) arguments(block *header) []Item {
	if block.typ != "module" || len(block.labels) == 0 {
		return nil
	}
	var items []Item
	for _, site := range q.sites(q.module(block.labels[0]), "var") {
		name := nameOf(site.Symbol)
		if !block.written[name] {
			items = append(items, Item{
				Kind: ItemAttribute, Label: name, Detail: "variable of the module", Doc: siteDoc(site),
				Insert: name + " = $0", Snippet: true,
			})
		}
	}
	return items
}

// skeleton is what is written for an attribute's value.
func skeleton(a *language.Attribute) string {
	switch {
	case a.Type == "string" || a.Type == "duration" || a.Type == "size":
		return `"$0"`
	case strings.HasPrefix(a.Type, "list of strings") && a.Names != language.NamesOfNothing:
		return `["$0"]`
	case strings.HasPrefix(a.Type, "list"):
		return "[$0]"
	case strings.HasPrefix(a.Type, "map of"):
		return "{ $0 }"
	}
	return "$0"
}

// blockSnippet is how a block is written, with the places to fill in.
func blockSnippet(b *language.BlockType) string {
	var out strings.Builder
	out.WriteString(b.Name)
	stop := 1
	label := func(name string) {
		fmt.Fprintf(&out, ` "${%d:%s}"`, stop, strings.ToLower(name))
		stop++
	}
	switch {
	case b.Label2 != "":
		fmt.Fprintf(&out, " %q", b.Variant)
		label(b.Label2)
	case b.Variant != "":
		fmt.Fprintf(&out, " %q", b.Variant)
	case b.Label != "":
		label(b.Label)
	}
	out.WriteString(" {\n")
	for i := range b.Attrs {
		if a := &b.Attrs[i]; a.Required {
			fmt.Fprintf(&out, "  %s = %s\n", a.Name, strings.Replace(skeleton(a), "$0", fmt.Sprintf("$%d", stop), 1))
			stop++
		}
	}
	out.WriteString("  $0\n}")
	return out.String()
}

// labels are the labels that choose a type of block.
func labels(parent *language.BlockType, line header) []Item {
	if parent == nil || len(line.labels) > 0 {
		return nil
	}
	var items []Item
	if line.typ == "dynamic" {
		for _, b := range parent.Settings() {
			items = append(items, Item{Kind: ItemBlock, Label: b.Name, Doc: b.Doc})
		}
	}
	for _, b := range parent.Variants(line.typ) {
		if b.Variant != "" {
			items = append(items, Item{Kind: ItemValue, Label: b.Variant, Detail: language.Header(b), Doc: b.Doc})
		}
	}
	return items
}

// texts are the strings that an attribute takes.
func (q *Query) texts(c *context, t *language.BlockType) []Item {
	a := attributeOf(c, t)
	if a == nil || !c.top {
		return nil
	}
	return knownTexts(a)
}

// attributeOf is the attribute whose expression has the place.
func attributeOf(c *context, t *language.BlockType) *language.Attribute {
	if t == nil {
		return nil
	}
	return t.Attr(c.attribute)
}

// nameOf is the last part of a symbol.
func nameOf(s outline.Symbol) string { return string(s[strings.LastIndexByte(string(s), '.')+1:]) }
