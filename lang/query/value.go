package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/lang/outline"
	"github.com/fray-ml/fray/schema"
)

// values are what an expression may go on with, after some steps of a reference.
func (q *Query) values(c *context, t *language.BlockType, steps []string) []Item {
	a := attributeOf(c, t)
	if len(steps) > 0 {
		return q.steps(c, steps)
	}
	var items []Item
	if a != nil && c.top {
		items = append(items, plainValues(a)...)
		if a.Type == "type" {
			return items
		}
		items = append(items, q.named(a)...)
	}
	if a != nil && a.Mode == language.ModeConstant {
		return append(items, q.functions()...)
	}
	items = append(items, q.roots(c)...)
	return append(items, q.functions()...)
}

// plainValues are the constants that an attribute takes.
func plainValues(a *language.Attribute) []Item {
	var items []Item
	switch a.Type {
	case "bool":
		for _, v := range []string{"true", "false"} {
			items = append(items, Item{Kind: ItemValue, Label: v})
		}
	case "type":
		for _, v := range []string{"string", "number", "bool", "any", "list()", "map()", "set()", "object({})", "tuple([])", "optional()"} {
			items = append(items, Item{Kind: ItemValue, Label: v})
		}
	}
	for _, text := range knownTexts(a) {
		text.Label = `"` + text.Label + `"`
		items = append(items, text)
	}
	return items
}

// knownTexts are the strings that an attribute takes, as far as they are known.
func knownTexts(a *language.Attribute) []Item {
	var items []Item
	for _, v := range a.Values {
		items = append(items, Item{Kind: ItemValue, Label: v, Detail: a.Name})
	}
	switch a.Names {
	case language.NamesOfNothing:
	case language.NamesOfTPUTypes:
		for _, offer := range accelerators.Offers(accelerators.Query{}) {
			items = append(items, Item{Kind: ItemValue, Label: offer.Type, Detail: shapeDetail(offer.Shape), Doc: offerDoc(offer)})
		}
	case language.NamesOfGPUTypes:
		for _, t := range accelerators.GPUTypes() {
			items = append(items, Item{Kind: ItemValue, Label: t.Name, Detail: fmt.Sprintf("%d GB each", t.Memory)})
		}
	case language.NamesOfZones:
		for _, zone := range knownZones() {
			items = append(items, Item{Kind: ItemValue, Label: zone.name, Detail: strings.Join(zone.generations, ", ")})
		}
	case language.NamesOfRegions:
		seen := map[string]bool{}
		for _, zone := range knownZones() {
			if region := accelerators.RegionOf(zone.name); !seen[region] {
				seen[region] = true
				items = append(items, Item{Kind: ItemValue, Label: region})
			}
		}
	}
	return items
}

// zone is a zone and the TPU generations that it has.
type zone struct {
	name        string
	generations []string
}

func knownZones() []zone {
	var zones []zone
	for _, generation := range accelerators.GenerationNames() {
		for _, name := range accelerators.OfferedZones(generation+"-8", nil) {
			i := slices.IndexFunc(zones, func(z zone) bool { return z.name == name })
			if i < 0 {
				i = len(zones)
				zones = append(zones, zone{name: name})
			}
			zones[i].generations = append(zones[i].generations, generation)
		}
	}
	slices.SortFunc(zones, func(a, b zone) int { return strings.Compare(a.name, b.name) })
	return zones
}

func shapeDetail(s accelerators.Shape) string {
	return fmt.Sprintf("%d chips, %d hosts, %s", s.Chips, s.Hosts, s.Topology)
}

// named are the declarations that an attribute which takes a reference means.
func (q *Query) named(a *language.Attribute) []Item {
	if a.Type != "reference" && a.Type != "list of references" {
		return nil
	}
	kinds := []string{a.Name}
	if a.Name == "depends_on" {
		kinds = []string{string(schema.KindJob), string(schema.KindJobGroup), string(schema.KindActorService), string(configs.RootModule), string(configs.RootData)}
	}
	var items []Item
	for _, kind := range kinds {
		for _, site := range q.sites(q.Files, kind) {
			items = append(items, siteItem(site, string(site.Symbol)))
		}
	}
	return items
}

// roots are what references start with.
func (q *Query) roots(c *context) []Item {
	counted, keyed := repeated(c)
	var items []Item
	for _, r := range q.Language.References {
		switch configs.Root(r.Root) {
		case configs.RootCount:
			if !counted {
				continue
			}
		case configs.RootEach:
			if !keyed {
				continue
			}
		case configs.RootSelf:
			if !slices.ContainsFunc(c.blocks, func(h header) bool { return h.typ == "postcondition" }) {
				continue
			}
		case configs.RootVar, configs.RootLocal, configs.RootPath, configs.RootData, configs.RootModule, configs.RootFray,
			configs.RootOutput, configs.RootValidation, configs.RootAddressed:
		}
		items = append(items, Item{Kind: ItemReference, Label: r.Root, Detail: r.Form, Doc: r.Doc, Rank: 3})
	}
	return items
}

// repeated reports how the block around a place becomes instances, by what is written
// before the place.
func repeated(c *context) (counted, keyed bool) {
	for _, h := range c.blocks {
		counted = counted || h.written["count"] || h.typ == string(schema.KindActorService)
		keyed = keyed || h.written["for_each"]
	}
	return counted, keyed
}

func (q *Query) functions() []Item {
	items := make([]Item, 0, len(q.Language.Functions))
	for _, f := range q.Language.Functions {
		items = append(items, Item{
			Kind: ItemFunction, Label: f.Name, Detail: f.Signature(), Doc: functionDoc(f), Rank: 4,
			Insert: f.Name + "($0)", Snippet: true,
		})
	}
	return items
}

// steps are the names that a reference may go on with.
func (q *Query) steps(c *context, steps []string) []Item {
	switch configs.Root(steps[0]) {
	case configs.RootModule:
		if len(steps) == 2 {
			return next(q.sites(q.module(steps[1]), "output"), "output")
		}
	case configs.RootData:
		if len(steps) == 3 {
			return attributes(configs.DataAttributes(language.DataKind(steps[1])))
		}
	case configs.RootCount, configs.RootEach, configs.RootPath, configs.RootFray:
		if r, ok := q.reference(steps[0]); ok && len(steps) == 1 {
			return attributes(r.Attributes)
		}
		return nil
	case configs.RootSelf:
		return attributes(selfOf(c))
	case configs.RootVar, configs.RootLocal, configs.RootOutput, configs.RootValidation, configs.RootAddressed:
	}
	if found := next(q.sites(q.Files, strings.Join(steps, ".")), strings.Join(steps, ".")); len(found) > 0 {
		if steps[0] != string(schema.KindJobGroup) || len(steps) != 2 {
			return found
		}
	}
	switch {
	case steps[0] == string(schema.KindJobGroup) && len(steps) == 4:
		return attributes(attributesOf(string(schema.KindJob)))
	case len(steps) == 2:
		return attributes(attributesOf(steps[0]))
	}
	return nil
}

// selfOf is what self has: the attributes of the innermost declaration around a place.
func selfOf(c *context) []string {
	for _, h := range slices.Backward(c.blocks) {
		if names := attributesOf(h.typ); names != nil {
			return names
		}
	}
	return nil
}

// attributesOf are what a reference to a declaration of a kind can ask for.
func attributesOf(kind string) []string {
	return (&configs.Declaration{Addr: schema.Address{Kind: schema.Kind(kind)}}).Attributes()
}

func attributes(names []string) []Item {
	items := make([]Item, 0, len(names))
	for _, name := range names {
		items = append(items, Item{Kind: ItemAttribute, Label: name})
	}
	return items
}

// next are the names of declarations that stand right after some steps, each once.
func next(sites []outline.Site, steps string) []Item {
	var items []Item
	for _, site := range sites {
		rest := strings.TrimPrefix(string(site.Symbol), steps+".")
		name, more, _ := strings.Cut(rest, ".")
		if n := len(items); n > 0 && items[n-1].Label == name {
			continue
		}
		if more != "" {
			items = append(items, Item{Kind: ItemReference, Label: name})
			continue
		}
		items = append(items, siteItem(site, name))
	}
	return items
}

func siteItem(site outline.Site, label string) Item {
	return Item{Kind: ItemReference, Label: label, Detail: site.Type, Doc: siteDoc(site)}
}
