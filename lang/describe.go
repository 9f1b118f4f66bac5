package lang

import (
	"slices"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/funcs"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/schema"
)

// LanguageFormat is the version of what Describe returns. The minor number
// rises with new fields, the major one with changed or removed fields.
const LanguageFormat = "1.1"

// Language describes what may stand in a configuration, as docs/schema-json.md
// has it: enough for an editor, or a checker of its own.
type Language struct {
	FormatVersion string             `json:"format_version"`
	FrayVersion   string             `json:"fray_version"`
	Blocks        []BlockDescription `json:"blocks"` // that stand in a file
	References    []RootDescription  `json:"references"`
	Functions     []funcs.Doc        `json:"functions"`
}

// BlockDescription describes one kind of block. Blocks of one type that differ
// in what may stand in them are described apart; their label distinguishes them.
type BlockDescription struct {
	Type       string                 `json:"type"`
	Doc        string                 `json:"doc"`
	Labels     []LabelDescription     `json:"labels"`
	Repeats    bool                   `json:"repeats"` // may stand more than once where it may stand
	Open       bool                   `json:"open"`    // takes attributes of any name
	Dynamic    bool                   `json:"dynamic"` // may be made by a dynamic block
	Attributes []AttributeDescription `json:"attributes"`
	Blocks     []BlockDescription     `json:"blocks"`
}

// LabelDescription describes a label of a block.
type LabelDescription struct {
	Name  string `json:"name"`            // of the label, for people
	Value string `json:"value,omitempty"` // the only one that this description is for
}

// AttributeDescription describes an attribute.
type AttributeDescription struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"` // in words
	Doc        string         `json:"doc"`
	Required   bool           `json:"required"`
	Default    string         `json:"default,omitempty"` // in words
	Expression ExpressionKind `json:"expression"`
	// Values are the only ones that it takes, where there is such a list.
	Values []string `json:"values,omitempty"`
	// Names is of what its texts are names, where fray knows many.
	Names language.NameKind `json:"names,omitempty"`
}

// ExpressionKind is a closed set of what may stand in an attribute's expression.
type ExpressionKind string

// The kinds of expressions.
const (
	ExpressionValue    ExpressionKind = "value"    // references of all kinds
	ExpressionShape    ExpressionKind = "shape"    // references, but not to one instance: no count, no each
	ExpressionConstant ExpressionKind = "constant" // functions, but no references
	ExpressionSelf     ExpressionKind = "self"     // references of all kinds, and to self: the object that has the postcondition
	ExpressionRaw      ExpressionKind = "raw"      // not evaluated: a type, or a list of addresses
)

// RootDescription describes what an expression can refer to.
type RootDescription struct {
	Root string `json:"root"` // the first word of the reference
	Form string `json:"form"`
	Doc  string `json:"doc"`
	// Attributes are those of what is referred to, where they are always the same.
	Attributes []string `json:"attributes,omitempty"`
}

// Describe returns the language of this version.
func Describe(frayVersion string) Language {
	root := describeBlock(language.Root())
	return Language{
		FormatVersion: LanguageFormat, FrayVersion: frayVersion,
		Blocks: root.Blocks, References: describeRoots(), Functions: funcs.Docs(),
	}
}

func describeBlock(t *language.BlockType) BlockDescription {
	b := BlockDescription{
		Type: t.Name, Doc: t.Doc, Repeats: t.Repeated, Open: t.Open,
		Labels: []LabelDescription{}, Attributes: []AttributeDescription{}, Blocks: []BlockDescription{},
	}
	if t.Label != "" {
		b.Labels = append(b.Labels, LabelDescription{Name: t.Label, Value: t.Variant})
	}
	if t.Label2 != "" {
		b.Labels = append(b.Labels, LabelDescription{Name: t.Label2})
	}
	for i := range t.Attrs {
		a := &t.Attrs[i]
		b.Attributes = append(b.Attributes, AttributeDescription{
			Name: a.Name, Type: a.Type, Doc: a.Doc, Required: a.Required, Default: a.Default,
			Expression: expressionKind(a.Mode), Values: a.Values, Names: a.Names,
		})
	}
	dynamic := t.Settings()
	for _, child := range t.Blocks {
		d := describeBlock(child)
		d.Dynamic = slices.Contains(dynamic, child)
		b.Blocks = append(b.Blocks, d)
	}
	return b
}

func expressionKind(m language.Mode) ExpressionKind {
	switch m {
	case language.ModeValue:
	case language.ModeShape:
		return ExpressionShape
	case language.ModeConstant:
		return ExpressionConstant
	case language.ModeRaw:
		return ExpressionRaw
	case language.ModeSelf:
		return ExpressionSelf
	}
	return ExpressionValue
}

func describeRoots() []RootDescription {
	roots := []RootDescription{
		{Root: string(configs.RootVar), Form: "var.NAME", Doc: "the value of a variable"},
		{Root: string(configs.RootLocal), Form: "local.NAME", Doc: "a name of a locals block"},
		{Root: string(configs.RootPath), Form: "path.NAME", Doc: "directories: of the configuration, and the current one", Attributes: []string{"module", "root", "cwd"}},
		{Root: string(configs.RootModule), Form: "module.NAME.OUTPUT", Doc: "an output of a module"},
		{Root: string(configs.RootData), Form: "data.KIND.NAME", Doc: "what a data block has read"},
		{Root: string(configs.RootFray), Form: "fray.workspace", Doc: "the workspace", Attributes: []string{"workspace"}},
		{Root: string(configs.RootSelf), Form: "self.NAME", Doc: "in a postcondition: the object that has it"},
		{Root: string(configs.RootCount), Form: "count.index", Doc: "in a block with count or replicas: the number of the instance", Attributes: []string{"index"}},
		{Root: string(configs.RootEach), Form: "each.key", Doc: "in a block with for_each: the instance's key, and what stands under it", Attributes: []string{"key", "value"}},
	}
	for _, kind := range schema.Kinds() {
		d := &configs.Declaration{Addr: schema.Address{Kind: kind}}
		roots = append(roots, RootDescription{
			Root: string(kind), Form: string(kind) + ".NAME", Doc: "what a " + string(kind) + " block declares", Attributes: d.Attributes(),
		})
	}
	return roots
}
