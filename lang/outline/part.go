package outline

import (
	"bytes"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/lang/syntax"
)

// Part is some lines of a file: a block, with the comments behind it. It knows nothing of
// its place, so that an edit before it leaves it as it is.
type Part struct {
	Text     []byte
	Declares []Declaration
	Refers   []Symbol // each once

	lines      int // that it ends
	broken     bool
	attributes bool // stand outside of blocks
	parsed     atomic.Pointer[parsedAt]
}

// Position is where a part begins, and in which file.
type Position struct {
	Line, Byte int
	Name       string
}

// parsedAt is a part as parsed at a position.
type parsedAt struct {
	Position

	body *hclsyntax.Body
}

// newPart is a part; body is nil if it is not parsed yet.
func newPart(text []byte, body *hclsyntax.Body, at Position) *Part {
	p := &Part{Text: text, lines: bytes.Count(text, []byte("\n"))}
	if body == nil {
		body = parseAt(text, at.Name, at.pos())
	}
	if body == nil {
		p.broken = true
		p.Declares = declaredByLines(text)
		return p
	}
	p.parsed.Store(&parsedAt{at, body})
	p.attributes = len(body.Attributes) > 0
	p.Declares = declarationsOf(body, at)
	p.Refers = referencesOf(body)
	return p
}

func (p Position) pos() hcl.Pos { return hcl.Pos{Line: p.Line, Column: 1, Byte: p.Byte} }

// Broken reports whether the part does not parse by itself.
func (p *Part) Broken() bool { return p.broken }

// in parses a part that is not broken again if its lines have moved since.
func (p Placed) in(name string) *parsedAt {
	if last := p.parsed.Load(); last.Line == p.Line && last.Name == name {
		return last
	}
	at := Position{p.Line, p.Byte, name}
	parsed := &parsedAt{at, parseAt(p.Text, name, at.pos())}
	p.parsed.Store(parsed)
	return parsed
}

// Errors are those of the syntax of a part, in its place.
func (p Placed) Errors(name string) hcl.Diagnostics {
	if diags := syntax.CheckConfig(p.Text, name); diags.HasErrors() {
		for _, d := range diags {
			p.shift(d)
		}
		return diags
	}
	_, diags := hclsyntax.ParseConfig(p.Text, name, Position{p.Line, p.Byte, name}.pos())
	return syntax.FirstErrors(diags, name)
}

// shift moves a diagnostic from the beginning of a text to the place of the part.
func (p Placed) shift(d *hcl.Diagnostic) {
	for _, rng := range []**hcl.Range{&d.Subject, &d.Context} {
		if *rng != nil { // a new one: both may be the same
			moved := Shifted(**rng, p.Line-1, p.Byte)
			*rng = &moved
		}
	}
}

// Shifted is a range some lines and bytes further down.
func Shifted(rng hcl.Range, lines, bytes int) hcl.Range {
	rng.Start.Line, rng.Start.Byte = rng.Start.Line+lines, rng.Start.Byte+bytes
	rng.End.Line, rng.End.Byte = rng.End.Line+lines, rng.End.Byte+bytes
	return rng
}

// blockTypes are the types of the blocks of a file.
func blockTypes() map[string]bool {
	types := map[string]bool{}
	for _, name := range language.Root().BlockNames() {
		types[name] = true
	}
	return types
}

// beginsBlock reports whether a line begins like a block of a file: with its type, and
// with a brace behind it.
func beginsBlock(text []byte, types map[string]bool) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	typ, rest, ok := bytes.Cut(line, []byte(" "))
	return ok && types[string(typ)] && bytes.ContainsRune(rest, '{') && !bytes.HasPrefix(rest, []byte("="))
}
