package query

import (
	"bytes"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/lang/language"
)

// place is a closed set of what stands at an offset.
type place int

const (
	placeNone   place = iota // a comment, or nothing that can be completed
	placeName                // the name of an attribute or the type of a block
	placeLabel               // a label of a block
	placeValue               // an expression
	placeString              // text within quotes, in an expression
)

// header is the beginning of a block.
type header struct {
	typ     string
	labels  []string
	written map[string]bool // attributes and types of blocks in it, before the place
}

// context is what surrounds an offset.
type context struct {
	place     place
	blocks    []header // from the outermost
	attribute string   // whose expression it is
	top       bool     // of the expression: within no other brackets than those of lists
	line      header   // of a placeLabel: the words before
}

// reader follows tokens and keeps what is open.
type reader struct {
	blocks  []header
	line    []hclsyntax.Token // of a body, since it began
	value   bool              // in an expression
	attr    string
	nesting []hclsyntax.TokenType // brackets, quotes and templates that are open in it
	last    hclsyntax.Token
}

// contextAt reads the tokens of a text up to an offset. The text begins outside of blocks.
func contextAt(text []byte, offset int) context {
	tokens, _ := hclsyntax.LexConfig(text[:offset], "", hcl.InitialPos)
	r := &reader{blocks: []header{{written: map[string]bool{}}}}
	for _, t := range tokens {
		if t.Type != hclsyntax.TokenEOF {
			r.take(t)
		}
	}
	return r.context()
}

func (r *reader) take(t hclsyntax.Token) {
	r.last = t
	if r.value {
		r.inValue(t)
		return
	}
	switch t.Type {
	case hclsyntax.TokenNewline, hclsyntax.TokenComment:
		if t.Type == hclsyntax.TokenNewline || bytes.HasSuffix(t.Bytes, []byte("\n")) {
			r.line = nil
		}
	case hclsyntax.TokenOBrace:
		r.blocks = append(r.blocks, r.header())
		r.line = nil
	case hclsyntax.TokenCBrace:
		r.blocks = r.blocks[:max(1, len(r.blocks)-1)]
		r.line = nil
	case hclsyntax.TokenEqual:
		r.value, r.nesting, r.attr = true, nil, r.header().typ
		r.block().written[r.attr] = true
		r.line = nil
	default:
		r.line = append(r.line, t)
	}
}

// block is the innermost block.
func (r *reader) block() *header { return &r.blocks[len(r.blocks)-1] }

// header reads the line as the beginning of a block.
func (r *reader) header() header {
	h := header{written: map[string]bool{}}
	for i, t := range r.line {
		switch {
		case i == 0 && t.Type == hclsyntax.TokenIdent:
			h.typ = string(t.Bytes)
			r.block().written[h.typ] = true
		case t.Type == hclsyntax.TokenIdent, t.Type == hclsyntax.TokenQuotedLit:
			h.labels = append(h.labels, string(t.Bytes))
		}
	}
	return h
}

func (r *reader) inValue(t hclsyntax.Token) {
	switch t.Type {
	case hclsyntax.TokenOBrace, hclsyntax.TokenOParen, hclsyntax.TokenOBrack, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc,
		hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
		r.nesting = append(r.nesting, t.Type)
	case hclsyntax.TokenCBrace, hclsyntax.TokenCParen, hclsyntax.TokenCBrack, hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
		if len(r.nesting) > 0 {
			r.nesting = r.nesting[:len(r.nesting)-1]
			return
		}
		if t.Type == hclsyntax.TokenCBrace { // of the block around it, on the same line
			r.value = false
			r.take(t)
		}
	case hclsyntax.TokenNewline, hclsyntax.TokenComment:
		if len(r.nesting) == 0 && bytes.HasSuffix(t.Bytes, []byte("\n")) {
			r.value, r.line = false, nil
		}
	default:
	}
}

func (r *reader) context() context {
	c := context{blocks: r.blocks}
	if r.last.Type == hclsyntax.TokenComment && !bytes.HasSuffix(r.last.Bytes, []byte("\n")) {
		return c
	}
	if !r.value {
		return r.inBody(c)
	}
	c.place, c.attribute, c.top = placeValue, r.attr, true
	for i, open := range r.nesting {
		if open != hclsyntax.TokenOBrack && (open != hclsyntax.TokenOQuote || i < len(r.nesting)-1) {
			c.top = false
		}
	}
	if n := len(r.nesting); n > 0 {
		switch r.nesting[n-1] {
		case hclsyntax.TokenOQuote:
			c.place = placeString
		case hclsyntax.TokenOHeredoc:
			c.place = placeNone
		default:
		}
	}
	return c
}

// inBody is the context where no expression is.
func (r *reader) inBody(c context) context {
	quotes, words := 0, 0
	for _, t := range r.line {
		switch t.Type {
		case hclsyntax.TokenOQuote, hclsyntax.TokenCQuote:
			quotes++
		case hclsyntax.TokenIdent:
			words++
		default:
		}
	}
	switch {
	case quotes%2 == 1:
		c.place, c.line = placeLabel, r.header()
		if r.last.Type == hclsyntax.TokenQuotedLit { // what is being written is no label yet
			c.line.labels = c.line.labels[:len(c.line.labels)-1]
		}
	case quotes == 0 && words <= 1 && len(r.line) == words:
		c.place = placeName
	}
	return c
}

// table is the type of the innermost block, nil if the table has none.
func (c *context) table(root *language.BlockType) *language.BlockType {
	t := root
	for _, h := range c.blocks[1:] {
		t = child(t, h)
		if t == nil {
			return nil
		}
	}
	return t
}

// child is the type of a block in another one.
func child(t *language.BlockType, h header) *language.BlockType {
	if h.typ == "content" && t.Name != "dynamic" {
		return t // of a dynamic block, which has the type of what it makes
	}
	if h.typ == "dynamic" && len(h.labels) > 0 {
		h = header{typ: h.labels[0]}
	}
	variants := t.Variants(h.typ)
	for _, v := range variants {
		if v.Variant == "" || len(h.labels) > 0 && h.labels[0] == v.Variant {
			return v
		}
	}
	return nil
}

// word is the identifier around an offset of a text.
func word(text []byte, offset int) (from, to int) {
	from, to = offset, offset
	for from > 0 && inName(text[from-1]) {
		from--
	}
	for to < len(text) && inName(text[to]) {
		to++
	}
	return from, to
}

func inName(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// stepsBefore are the steps of a reference that end with a dot at an offset: of "job.a[0].",
// job and a.
func stepsBefore(text []byte, offset int) []string {
	var steps []string
	at := offset
	for at > 0 && text[at-1] == '.' {
		at--
		for at > 0 && text[at-1] == ']' {
			open := bytes.LastIndexByte(text[:at], '[')
			if open < 0 || bytes.ContainsRune(text[open:at], '\n') {
				return nil
			}
			at = open
		}
		from := at
		for from > 0 && inName(text[from-1]) {
			from--
		}
		if from == at {
			return nil
		}
		steps = append([]string{string(text[from:at])}, steps...)
		at = from
	}
	return steps
}

// stringPrefix is what a string has before an offset.
func stringPrefix(text []byte, offset int) (prefix string, from int) {
	from = bytes.LastIndexByte(text[:offset], '"') + 1
	if line := bytes.LastIndexByte(text[:offset], '\n') + 1; from < line {
		from = offset
	}
	return string(text[from:offset]), from
}

func hasPrefix(s, prefix string) bool {
	return strings.HasPrefix(strings.ToLower(s), strings.ToLower(prefix))
}
