package schema

import (
	"bytes"
	"unicode/utf8"
)

// call reads what may follow a name: the arguments of a function, after more of
// its name.
func (f *fastFormatter) call() bool {
	named := false
	for f.is(layoutDoubleColon) {
		f.advance()
		if f.peek() != layoutIdent && f.kind != layoutIn {
			return false
		}
		f.advance()
		named = true
	}
	if !f.is(layoutOParen) {
		return !named
	}
	return f.within(layoutCParen, func() bool {
		for !f.is(layoutCParen) {
			if !f.expression() {
				return false
			}
			if f.take(layoutEllipsis) || !f.take(layoutComma) {
				break
			}
			f.nextItem()
		}
		return true
	})
}

func (f *fastFormatter) tuple() bool {
	if f.keyword("for") {
		return f.forExpression(false)
	}
	for !f.is(layoutCBrack) {
		if !f.expression() {
			return false
		}
		if !f.take(layoutComma) {
			break
		}
		f.nextItem()
	}
	return true
}

func (f *fastFormatter) object() bool {
	if f.keyword("for") {
		return f.forExpression(true)
	}
	f.newlines = true
	for {
		for f.kind == layoutNewline {
			f.advance()
		}
		if f.kind == layoutCBrace {
			return true
		}
		f.nextItem()
		if !f.expression() || !f.take(layoutEqual) && !f.take(layoutColon) || !f.expression() {
			return false
		}
		if !f.take(layoutComma) && !f.take(layoutNewline) {
			return f.kind == layoutCBrace
		}
	}
}

// keyword reports whether a word is at hand.
func (f *fastFormatter) keyword(word string) bool {
	return f.is(layoutIdent) && string(f.text) == word
}

func (f *fastFormatter) forExpression(object bool) bool {
	f.advance()
	if !f.name() || f.take(layoutComma) && !f.name() || !f.take(layoutIn) {
		return false
	}
	if !f.expression() || !f.take(layoutColon) || !f.expression() {
		return false
	}
	if f.take(layoutFatArrow) != object || object && !f.expression() {
		return false
	}
	if object {
		f.take(layoutEllipsis)
	}
	if f.keyword("if") {
		f.advance()
		return f.expression()
	}
	return true
}

func (f *fastFormatter) name() bool { return f.take(layoutIdent) || f.take(layoutIn) }

// traversals reads attributes, indices and splats.
func (f *fastFormatter) traversals() bool {
	for f.is(layoutDot) || f.is(layoutOBrack) {
		step := f.index
		if f.kind == layoutDot {
			step = f.attributes
		}
		if !step() {
			return false
		}
	}
	return true
}

// attributes reads what stands behind a dot, which after a star is attributes
// for as long as there are dots.
func (f *fastFormatter) attributes() bool {
	if !f.dot() {
		return false
	}
	if !f.take(layoutStar) {
		return f.step()
	}
	for f.is(layoutDot) {
		if !f.dot() || !f.step() {
			return false
		}
	}
	return true
}

// dot reads a dot, if not behind a number: with no space between them they
// would be one.
func (f *fastFormatter) dot() bool { return f.line.before != layoutNumber && f.take(layoutDot) }

// step reads the name of an attribute, or the number that may stand for one.
func (f *fastFormatter) step() bool {
	if f.is(layoutNumber) {
		for _, c := range f.text {
			if !isDigit(c) {
				return false
			}
		}
		f.advance()
		return true
	}
	return f.name()
}

func (f *fastFormatter) index() bool {
	if !f.operator() {
		return false
	}
	saved, newlines := f.open(), f.newlines
	f.advance()
	if !f.take(layoutStar) {
		f.newlines = false
		if !f.expression() {
			return false
		}
	}
	ok := f.take(layoutCBrack)
	f.newlines = newlines
	f.close(saved)
	return ok
}

// quoted reads a quoted template, and reports whether it is nothing but one
// interpolation.
func (f *fastFormatter) quoted() (lone, ok bool) {
	if f.depth >= maxNesting {
		return false, false
	}
	saved := f.open()
	start, at, interpolations, literals := f.pos, f.pos, 0, 0
	for {
		next, stop := f.literal(at, '"')
		if next < 0 || !f.addLiteral(start, next) {
			return false, false
		}
		if next > start {
			literals++
		}
		if stop == '"' {
			f.add(layoutCQuote, next, next+1, 1)
			f.pos = next + 1
			break
		}
		if !f.interpolation(next) {
			return false, false
		}
		interpolations++
		start, at = f.pos, f.pos
	}
	f.close(saved)
	f.advance()
	return interpolations == 1 && literals == 0, true
}

// literal finds where a literal that starts at a place ends: at a quote or a
// newline, whichever ends its template, or at an interpolation. The place is
// -1 where that is not understood.
func (f *fastFormatter) literal(at int, end byte) (place int, stop byte) {
	src := f.src
	for {
		switch c := src[at]; c {
		case end:
			return at, end
		case '\n':
			return -1, 0 // a quoted one ends on its line
		case '\\':
			if end == '"' {
				n := escape(src[at+1:])
				if n == 0 {
					return -1, 0
				}
				at += n
			}
			at++
		case '$', '%':
			run := at
			for src[at] == c {
				at++
			}
			switch {
			case src[at] != '{' || at-run == 2: // as it is, or escaped
			case c == '$' && at-run == 1:
				return run, '$'
			default:
				return -1, 0
			}
		default:
			at++
		}
	}
}

// escape is the length of what follows a backslash, 0 if it is not understood.
func escape(src []byte) int {
	switch src[0] {
	case 'n', 'r', 't', '"', '\\':
		return 1
	}
	return 0
}

// addLiteral adds a literal token to the layout.
func (f *fastFormatter) addLiteral(start, end int) bool {
	if start == end {
		return true
	}
	text, columns := f.src[start:end], end-start
	if !ascii(text) {
		if !utf8.Valid(text) || bytes.ContainsAny(text, "$%") { // where the scanner cuts matters to the width
			return false
		}
		columns = columnsOf(text)
	}
	f.add(layoutLiteral, start, end, columns)
	return true
}

// interpolation reads ${ … } and leaves pos behind it.
func (f *fastFormatter) interpolation(at int) bool {
	saved, newlines, template, braces := f.open(), f.newlines, f.template, f.braces
	f.newlines, f.template, f.braces = false, true, 0
	f.add(layoutInterp, at, at+2, 2)
	f.pos = at + 2
	f.advance()
	ok := f.depth < maxNesting && f.expression() && f.is(layoutSeqEnd)
	f.newlines, f.template, f.braces = newlines, template, braces
	f.close(saved)
	return ok
}

// heredoc reads a heredoc from its start to the newline behind its end.
func (f *fastFormatter) heredoc() bool {
	if f.template || f.depth >= maxNesting {
		return false
	}
	saved := f.open()
	marker := bytes.TrimLeft(bytes.TrimSpace(f.text), "<-")
	start, fresh := f.pos, true
	for {
		end := bytes.IndexByte(f.src[start:], '\n')
		if end < 0 {
			return false
		}
		end += start
		if fresh && bytes.Equal(bytes.TrimSpace(f.src[start:end]), marker) {
			f.add(layoutCHeredoc, start, end, end-start)
			f.pos = end
			f.close(saved)
			f.advance()
			return true
		}
		next, stop := f.literal(start, '\n')
		if next < 0 {
			return false
		}
		if stop == '\n' {
			next++
		}
		if !f.addLiteral(start, next) || stop == '$' && !f.interpolation(next) {
			return false
		}
		if fresh = stop == '\n'; fresh {
			start = next
		} else {
			start = f.pos
		}
		if start >= len(f.src) {
			return false
		}
	}
}
