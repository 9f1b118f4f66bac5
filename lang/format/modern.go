package format

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// replacement is new text for a part of a source.
type replacement struct {
	from, to int
	text     string
}

// modernize replaces old forms by those of today, as terraform fmt does:
//
//	name = "${var.x}"     name = var.x
//	type = "list"         type = list(string), and of a variable only
//	type = map            type = map(any)
//	job train {           job "train" {
//
// What it returns has no other meaning and parses, else it is src.
func modernize(src []byte, body *hclsyntax.Body) []byte {
	m := modernizer{src: src}
	m.body(body, true, "")
	if len(m.found) == 0 {
		return src
	}
	slices.SortFunc(m.found, func(a, b replacement) int { return cmp.Compare(a.from, b.from) })
	var out []byte
	at := 0
	for _, r := range m.found {
		out = append(append(out, src[at:r.from]...), r.text...)
		at = r.to
	}
	out = append(out, src[at:]...)
	if _, diags := hclsyntax.ParseConfig(out, "", hcl.InitialPos); diags.HasErrors() {
		return src
	}
	return out
}

type modernizer struct {
	src   []byte
	found []replacement
}

func (m *modernizer) replace(rng hcl.Range, text string) {
	m.found = append(m.found, replacement{from: rng.Start.Byte, to: rng.End.Byte, text: text})
}

// body visits a body: that of the file, or of a block in it of a type, or any.
func (m *modernizer) body(body *hclsyntax.Body, top bool, of string) {
	for name, attr := range body.Attributes {
		if of == "variable" && name == "type" {
			m.variableType(attr.Expr)
		} else if wrap, ok := attr.Expr.(*hclsyntax.TemplateWrapExpr); ok {
			m.unwrap(wrap)
		}
	}
	for _, block := range body.Blocks {
		for i, rng := range block.LabelRanges {
			if m.src[rng.Start.Byte] != '"' {
				m.replace(rng, `"`+block.Labels[i]+`"`)
			}
		}
		of := ""
		if top {
			of = block.Type
		}
		m.body(block.Body, false, of)
	}
}

// unwrap takes an expression out of a template that has nothing else.
func (m *modernizer) unwrap(wrap *hclsyntax.TemplateWrapExpr) {
	rng := wrap.SrcRange
	tokens, _ := hclsyntax.LexExpression(m.src[rng.Start.Byte:rng.End.Byte], "", hcl.Pos{Line: 1, Column: 1})
	if len(tokens) < 6 || tokens[0].Type != hclsyntax.TokenOQuote { // with the end of the file
		return
	}
	tokens = tokens[2 : len(tokens)-3]
	for len(tokens) > 0 && tokens[0].Type == hclsyntax.TokenNewline {
		tokens = tokens[1:]
	}
	for len(tokens) > 0 && tokens[len(tokens)-1].Type == hclsyntax.TokenNewline {
		tokens = tokens[:len(tokens)-1]
	}
	if len(tokens) == 0 {
		return
	}
	lines := false
	for _, t := range tokens {
		if t.Type == hclsyntax.TokenOHeredoc {
			return
		}
		lines = lines || bytes.HasSuffix(t.Bytes, []byte("\n"))
	}
	text := string(m.src[rng.Start.Byte+tokens[0].Range.Start.Byte : rng.Start.Byte+tokens[len(tokens)-1].Range.End.Byte])
	if _, ok := wrap.Wrapped.(*hclsyntax.ParenthesesExpr); lines && (!ok || text[0] != '(' || text[len(text)-1] != ')') {
		text = "(" + text + ")"
	}
	m.replace(rng, text)
}

// variableType writes out a type without its element type.
func (m *modernizer) variableType(expr hclsyntax.Expression) {
	name, element := hcl.ExprAsKeyword(expr), "any"
	if template, ok := expr.(*hclsyntax.TemplateExpr); ok && template.IsStringLiteral() && m.src[template.SrcRange.Start.Byte] == '"' {
		val, _ := template.Value(nil)
		name, element = val.AsString(), "string"
		if name == "string" {
			m.replace(template.SrcRange, name)
			return
		}
	}
	switch {
	case name == "list", name == "map", name == "set" && element == "any":
		m.replace(expr.Range(), name+"("+element+")")
	}
}
