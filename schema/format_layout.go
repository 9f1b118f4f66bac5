package schema

import (
	"bytes"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// layout puts the right number of spaces between the tokens of a source, as
// hclwrite.Format does but in one pass: tokens are added one by one, and what
// is to change is decided at the end of each group of lines that are aligned
// with each other. Nothing but spaces changes, so all that is kept is the gaps
// between tokens that may have to.
type layout struct {
	src     []byte
	out     []byte // the result up to copied; nil while nothing differs
	copied  int    // how much of src is in out
	tooWide bool   // the result would be absurdly large
	spacing *spacing

	gaps    []gap
	aligned []alignedLine // since the last line without anything to align
	indents []int         // brackets that each level of indentation waits for
	line    layoutLine
}

// gap is the space before a token.
type gap struct {
	from, to int
	spaces   int // that it is to have
}

// layoutLine is the line under way.
type layoutLine struct {
	end          int        // of its last token
	before, last layoutKind // its last two tokens
	first        int        // index of the gap before it
	columns      int        // without the indentation
	brackets     int        // opened and not closed
	heredoc      bool       // whether a heredoc has begun
	upToHeredoc  int        // brackets, then

	equal       int // index of the gap before the first equals sign, -1: none
	equalColumn int
	atEqual     int // brackets, there

	comment int // index of the gap before a comment at its end, -1: none
}

// alignedLine is a line with an equals sign or a comment at its end.
type alignedLine struct {
	equal       int // gap, -1: none
	equalColumn int
	comment     int // gap, -1: none
	rest        int // columns from the equals sign, or else from the start, to the comment
}

func newLayout(src []byte) layout {
	return layout{src: src, spacing: newSpacing(), line: layoutLine{equal: -1, comment: -1}}
}

// add takes the next token, which is columns wide.
func (l *layout) add(k layoutKind, start, end, columns int) {
	line := &l.line
	switch {
	case line.last == layoutNone:
		line.first = len(l.gaps)
		l.gaps = append(l.gaps, gap{from: line.end, to: start})
	case k == layoutLineComment:
		line.comment = len(l.gaps)
		l.gaps = append(l.gaps, gap{from: line.end, to: start})
		line.end = end
		l.endLine()
		return
	default:
		spaces := int(l.spacing[line.last][k])
		if spaces == askBefore {
			spaces = 0
			if spaceBetween(line.before, line.last, k) {
				spaces = 1
			}
		}
		if k == layoutEqual && line.equal < 0 {
			line.equal, line.equalColumn, line.atEqual = len(l.gaps), line.columns, line.brackets
			l.gaps = append(l.gaps, gap{from: line.end, to: start, spaces: spaces})
		} else if start-line.end != spaces || spaces == 1 && l.src[line.end] != ' ' {
			l.gaps = append(l.gaps, gap{from: line.end, to: start, spaces: spaces})
		}
		line.columns += spaces
	}
	line.columns += columns
	line.brackets += bracketChange(k)
	line.before, line.last, line.end = line.last, k, end
	switch {
	case k == layoutNewline || k == layoutLineComment:
		l.endLine()
	case k == layoutOHeredoc && !line.heredoc:
		line.heredoc, line.upToHeredoc = true, line.brackets
	}
}

// endLine decides the indentation of a line and whether it is to be aligned.
func (l *layout) endLine() {
	line := &l.line
	assigns := line.equal >= 0 && line.brackets == line.atEqual
	indent := 0
	if line.before != layoutNone || line.last != layoutNewline {
		brackets := line.brackets
		if line.heredoc && !assigns {
			brackets = line.upToHeredoc
		}
		indent = 2 * l.indentation(brackets)
	}
	l.gaps[line.first].spaces = indent
	if !assigns && line.comment < 0 {
		l.flush()
	} else {
		a := alignedLine{equal: -1, comment: line.comment, rest: indent + line.columns}
		if assigns {
			a.equal, a.equalColumn = line.equal, indent+line.equalColumn
			a.rest = line.columns - line.equalColumn - l.gaps[line.equal].spaces
		}
		l.aligned = append(l.aligned, a)
	}
	*line = layoutLine{end: line.end, equal: -1, comment: -1}
}

// indentation returns the level of a line with so many brackets more opened
// than closed. A line that opens several is one level, which the line that
// closes the last of them ends.
func (l *layout) indentation(brackets int) int {
	level := len(l.indents)
	if brackets > 0 {
		l.indents = append(l.indents, brackets)
		return level
	}
	for closed := -brackets; closed > 0 && level > 0; {
		open := &l.indents[level-1]
		if closed < *open {
			*open -= closed
			break
		}
		closed -= *open
		level--
		l.indents = l.indents[:level]
	}
	return level
}

// flush writes what is decided.
func (l *layout) flush() {
	l.align()
	for _, g := range l.gaps {
		if g.to-g.from == g.spaces && bytes.IndexByte(l.src[g.from:g.to], '\t') < 0 {
			continue
		}
		if l.tooWide = l.tooWide || len(l.out)+g.spaces > maxWidening+4*len(l.src); l.tooWide {
			break
		}
		if l.out == nil {
			l.out = make([]byte, 0, len(l.src)+len(l.src)/8)
		}
		l.out = append(l.out, l.src[l.copied:g.from]...)
		for range g.spaces {
			l.out = append(l.out, ' ')
		}
		l.copied = g.to
	}
	l.gaps = l.gaps[:0]
}

// maxWidening is how many bytes the layout may add to four times the source's:
// many lines that are deep down, or aligned with a long one, multiply.
const maxWidening = 1 << 20

// align aligns first the equals signs, then the comments of neighbouring lines.
func (l *layout) align() {
	lines := l.aligned
	for start := 0; start < len(lines); {
		end, widest := start, 0
		for ; end < len(lines) && lines[end].equal >= 0; end++ {
			widest = max(widest, lines[end].equalColumn)
		}
		for _, a := range lines[start:end] {
			l.gaps[a.equal].spaces = widest - a.equalColumn + 1
		}
		start = max(end, start+1)
	}
	column := func(a *alignedLine) int {
		if a.equal < 0 {
			return a.rest
		}
		return a.equalColumn + l.gaps[a.equal].spaces + a.rest
	}
	for start := 0; start < len(lines); {
		end, widest := start, 0
		for ; end < len(lines) && lines[end].comment >= 0; end++ {
			widest = max(widest, column(&lines[end]))
		}
		for i := range lines[start:end] {
			a := &lines[start+i]
			l.gaps[a.comment].spaces = widest - column(a) + 1
		}
		start = max(end, start+1)
	}
	l.aligned = lines[:0]
}

// result is the source as it is to be, the source itself if that is the same,
// and false where it would be absurdly large.
func (l *layout) result() ([]byte, bool) {
	if l.line.last != layoutNone {
		l.endLine() // the last line has no end
	}
	if from := l.line.end; from < len(l.src) { // its spaces stay
		l.gaps = append(l.gaps, gap{from: from, to: len(l.src), spaces: len(l.src) - from})
	}
	l.flush()
	switch {
	case l.tooWide:
		return nil, false
	case l.out == nil:
		return l.src, true
	}
	return append(l.out, l.src[l.copied:]...), true
}

// layoutTokens lays out a source of which the tokens are known.
func layoutTokens(src []byte, tokens hclsyntax.Tokens) ([]byte, bool) {
	l := newLayout(src)
	start := 0
	if len(tokens) > 0 {
		start = tokens[len(tokens)-1].Range.End.Byte - len(src) // a byte order mark counts in the ranges
	}
	for i, t := range tokens {
		if t.Type == hclsyntax.TokenEOF {
			break
		}
		kind := layoutKindOf(t)
		if kind == layoutBlockComment && tokens[i+1].Type == hclsyntax.TokenEOF {
			kind = layoutLineComment
		}
		columns := len(t.Bytes)
		if !ascii(t.Bytes) || bytes.IndexByte(t.Bytes, '\r') >= 0 {
			columns = columnsOf(t.Bytes)
		}
		l.add(kind, t.Range.Start.Byte-start, t.Range.End.Byte-start, columns)
	}
	return l.result()
}

// columnsOf is the width of a token with characters beyond ASCII, as hclwrite
// counts it.
func columnsOf(text []byte) int {
	return hclwrite.Tokens{{Type: hclsyntax.TokenStringLit, Bytes: text}}.Columns()
}
