package query

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/funcs"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/lang/outline"
	"github.com/fray-ml/fray/schema"
)

// Hover is what stands at the offset, as Markdown, and its bytes; "" for what has no
// documentation.
func (q *Query) Hover() (doc string, from, to int) {
	text, start := q.part()
	from, to = word(text, q.Offset-start)
	if from == to {
		return "", 0, 0
	}
	c := contextAt(text, to)
	t := c.table(q.root())
	name := string(text[from:to])
	switch c.place {
	case placeNone:
	case placeName:
		doc = q.nameDoc(&c, t, name)
	case placeLabel:
		doc = labelDoc(t, c.line, name)
	case placeString:
		doc = textDoc(attributeOf(&c, t), name)
	case placeValue:
		doc = q.valueDoc(name, stepsBefore(text, from), bytes.HasPrefix(text[to:], []byte("(")), text[to:])
	}
	return doc, start + from, start + to
}

// nameDoc documents the name of an attribute or the type of a block.
func (q *Query) nameDoc(c *context, t *language.BlockType, name string) string {
	block := c.blocks[len(c.blocks)-1]
	if t == nil {
		return ""
	}
	if a := t.Attr(name); a != nil {
		return attributeDoc(a)
	}
	if site, ok := q.argument(&block, name); ok {
		return siteDoc(site)
	}
	if variants := t.Variants(name); len(variants) > 0 {
		return blockDoc(variants[0])
	}
	if site, ok := q.Files.Find(outline.Of(string(configs.RootLocal), name)); ok && block.typ == "locals" {
		return siteDoc(site)
	}
	return ""
}

// argument is the variable of a module that an attribute of a block which calls it gives.
func (q *Query) argument(block *header, name string) (outline.Site, bool) {
	if block.typ != "module" || len(block.labels) == 0 {
		return outline.Site{}, false
	}
	return q.module(block.labels[0]).Find(outline.Of(string(configs.RootVar), name))
}

func labelDoc(parent *language.BlockType, line header, name string) string {
	if parent == nil {
		return ""
	}
	for _, b := range parent.Variants(line.typ) {
		if b.Variant == "" || b.Variant == name {
			return blockDoc(b)
		}
	}
	return ""
}

// textDoc documents a string that is a name.
func textDoc(a *language.Attribute, name string) string {
	if a == nil {
		return ""
	}
	if a.Names == language.NamesOfTPUTypes || a.Names == language.NamesOfAccelerators {
		if shape, err := accelerators.Parse(name); err == nil {
			for _, offer := range accelerators.Offers(accelerators.Query{Generation: shape.Generation}) {
				if offer.Type == shape.Type {
					return fmt.Sprintf("**%s**: %s\n\n%s", offer.Type, shapeDetail(offer.Shape), offerDoc(offer))
				}
			}
		}
	}
	return attributeDoc(a)
}

func (q *Query) valueDoc(name string, steps []string, called bool, rest []byte) string {
	if called && len(steps) == 0 {
		if f, ok := q.function(name); ok {
			return functionDoc(f)
		}
		return ""
	}
	if site, ok := q.referred(append(steps, name)); ok {
		return siteDoc(site)
	}
	if r, ok := q.reference(name); ok && len(steps) == 0 && bytes.HasPrefix(rest, []byte(".")) {
		return fmt.Sprintf("`%s`: %s", r.Form, r.Doc)
	}
	return ""
}

// referred is the declaration that the steps of a reference name so far.
func (q *Query) referred(steps []string) (outline.Site, bool) {
	files := q.Files
	switch {
	case steps[0] == string(configs.RootModule) && len(steps) == 3:
		files, steps = q.module(steps[1]), []string{string(configs.RootOutput), steps[2]}
	case steps[0] == string(schema.KindJobGroup) && len(steps) > 4:
		steps = steps[:4]
	case steps[0] == string(configs.RootData) && len(steps) > 3:
		steps = steps[:3]
	case steps[0] != string(configs.RootData) && steps[0] != string(schema.KindJobGroup) && len(steps) > 2:
		steps = steps[:2]
	}
	return files.Find(outline.Of(steps...))
}

func attributeDoc(a *language.Attribute) string {
	var doc strings.Builder
	fmt.Fprintf(&doc, "**%s**: %s", a.Name, a.Type)
	switch {
	case a.Required:
		doc.WriteString(", required")
	case a.Default != "":
		fmt.Fprintf(&doc, ", default: %s", a.Default)
	}
	fmt.Fprintf(&doc, "\n\n%s", a.Doc)
	if len(a.Values) > 0 {
		fmt.Fprintf(&doc, "\n\nOne of `\"%s\"`.", strings.Join(a.Values, "\"`, `\""))
	}
	return doc.String()
}

func blockDoc(b *language.BlockType) string {
	return fmt.Sprintf("```fray\n%s\n```\n\n%s", language.Header(b), b.Doc)
}

func functionDoc(f funcs.Doc) string {
	return fmt.Sprintf("```fray\n%s\n```\n\n%s\n\nExample: `%s`", f.Signature(), f.Description, f.Example)
}

func offerDoc(o accelerators.Offer) string {
	if len(o.Zones) == 0 {
		return ""
	}
	zones := make([]string, 0, len(o.Zones))
	for _, z := range o.Zones {
		zones = append(zones, z.Zone)
	}
	return "In " + strings.Join(zones, ", ") + "."
}

// maxShown is how many lines of a declaration are shown.
const maxShown = 12

// siteDoc shows a declaration as it is written.
func siteDoc(s outline.Site) string {
	lines := bytes.Split(s.Part.Text[s.Whole.Start.Byte:min(s.Whole.End.Byte, len(s.Part.Text))], []byte("\n"))
	if len(lines) > maxShown {
		lines = append(lines[:maxShown:maxShown], []byte("  …"))
	}
	doc := fmt.Sprintf("```fray\n%s\n```", bytes.Join(lines, []byte("\n")))
	if s.Doc != "" {
		doc = s.Doc + "\n\n" + doc
	}
	return fmt.Sprintf("%s\n\n%s line %d", doc, s.File.Name, s.Part.Line+s.Name.Start.Line-1)
}
