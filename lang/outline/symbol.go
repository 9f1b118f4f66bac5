package outline

import (
	"bytes"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/schema"
)

// Symbol is what a block declares, as references write it: "var.x", "local.x",
// "job_group.g.job.j", "data.outputs.x", "module.m". A block without a name is its type:
// "controller"; of an output it is "output.x".
type Symbol string

// Of is the symbol of a name.
func Of(parts ...string) Symbol { return Symbol(strings.Join(parts, ".")) }

// Declaration is a place that declares a symbol, relative to its part.
type Declaration struct {
	Symbol Symbol
	Type   string // of the block, "local" for one of locals
	Name   hcl.Range
	Whole  hcl.Range // of the block or attribute
	Doc    string    // its description, as far as that is a plain string
	Source string    // of a module
	Group  Symbol    // of a job in a group: the group
}

func declarationsOf(body *hclsyntax.Body, at Position) []Declaration {
	var found []Declaration
	for _, b := range body.Blocks {
		found = append(found, declaredBy(b, at, "")...)
	}
	return found
}

// declaredBy is what a block declares; group is the job group that it stands in.
func declaredBy(b *hclsyntax.Block, at Position, group Symbol) []Declaration {
	relative := func(rng hcl.Range) hcl.Range { return Shifted(rng, 1-at.Line, -at.Byte) }
	d := Declaration{Type: b.Type, Name: relative(b.DefRange()), Whole: relative(b.Range()), Group: group}
	if n := len(b.LabelRanges); n > 0 {
		d.Name = relative(b.LabelRanges[n-1])
	}
	d.Doc, d.Source = text(b.Body, "description"), text(b.Body, "source")
	switch b.Type {
	case "locals":
		return localsOf(b, relative)
	case "variable":
		d.Symbol = Of(append([]string{string(configs.RootVar)}, b.Labels...)...)
	default:
		d.Symbol = Of(append([]string{b.Type}, b.Labels...)...)
		if group != "" {
			d.Symbol = group + "." + d.Symbol
		}
	}
	found := []Declaration{d}
	for _, child := range b.Body.Blocks {
		if b.Type == string(schema.KindJobGroup) && child.Type == string(schema.KindJob) {
			found = append(found, declaredBy(child, at, d.Symbol)...)
		}
		if b.Type == "check" && child.Type == string(configs.RootData) {
			found = append(found, declaredBy(child, at, "")...)
		}
	}
	return found
}

func localsOf(b *hclsyntax.Block, relative func(hcl.Range) hcl.Range) []Declaration {
	var found []Declaration
	for name, a := range b.Body.Attributes {
		found = append(found, Declaration{
			Symbol: Of(string(configs.RootLocal), name), Type: string(configs.RootLocal),
			Name: relative(a.NameRange), Whole: relative(a.SrcRange),
		})
	}
	slices.SortFunc(found, func(a, b Declaration) int { return a.Name.Start.Byte - b.Name.Start.Byte })
	return found
}

// text is an attribute that is a plain string, "" if it is another.
func text(body *hclsyntax.Body, name string) string {
	a := body.Attributes[name]
	if a == nil {
		return ""
	}
	template, ok := a.Expr.(*hclsyntax.TemplateExpr)
	if !ok || !template.IsStringLiteral() {
		return ""
	}
	val, diags := template.Value(nil)
	if diags.HasErrors() {
		return ""
	}
	return val.AsString()
}

// declaredByLines is what a text that does not parse declares, as far as its first line
// shows.
func declaredByLines(src []byte) []Declaration {
	var found []Declaration
	at, line, types := 0, 1, blockTypes()
	for row := range bytes.SplitAfterSeq(src, []byte("\n")) {
		if header, _, ok := bytes.Cut(row, []byte("{")); ok && beginsBlock(row, types) {
			rng := hcl.Range{Start: hcl.Pos{Line: line, Column: 1, Byte: at}, End: hcl.Pos{Line: line, Column: len(header) + 1, Byte: at + len(header)}}
			whole := rng
			whole.End.Byte = at + len(bytes.TrimRight(row, "\n"))
			words := strings.Fields(strings.ReplaceAll(string(header), `"`, " "))
			d := Declaration{Type: words[0], Name: rng, Whole: whole}
			if words[0] == "variable" {
				words[0] = string(configs.RootVar)
			}
			d.Symbol = Of(words...)
			found = append(found, d)
		}
		at, line = at+len(row), line+1
	}
	return found
}

// referencesOf are the symbols that the expressions of a body refer to.
func referencesOf(body *hclsyntax.Body) []Symbol {
	seen := map[Symbol]bool{}
	var found []Symbol
	add := func(s Symbol) {
		if s != "" && !seen[s] {
			seen[s] = true
			found = append(found, s)
		}
	}
	visitExpressions(body, func(x hclsyntax.Expression) {
		for _, t := range x.Variables() {
			add(symbolOf(t))
		}
	})
	return found
}

func visitExpressions(body *hclsyntax.Body, visit func(hclsyntax.Expression)) {
	for _, a := range body.Attributes {
		visit(a.Expr)
	}
	for _, b := range body.Blocks {
		visitExpressions(b.Body, visit)
	}
}

// symbolOf is the block that a reference names, "" for one that names none.
func symbolOf(t hcl.Traversal) Symbol {
	steps := 2
	switch configs.Root(t.RootName()) {
	case configs.RootData:
		steps = 3
	case configs.RootPath, configs.RootCount, configs.RootEach, configs.RootFray, configs.RootSelf:
		return ""
	case configs.RootVar, configs.RootLocal, configs.RootModule, configs.RootOutput, configs.RootValidation, configs.RootAddressed:
	}
	words := []string{t.RootName()}
	for i := 1; i < steps; i++ {
		step, ok := configs.StepName(t, i)
		if !ok {
			return ""
		}
		words = append(words, step)
	}
	return Of(words...)
}
