package schema

import (
	"bytes"
	"unicode/utf8"
)

// fastFormatter formats source of the common kind in one pass, without a tree:
// it reads tokens, checks that they are in the grammar, and lays them out. It
// understands a part of the language and gives up on the rest, which is for the
// libraries then; what it accepts, they accept.
//
// It gives up on: errors of any kind, identifiers beyond ASCII, carriage returns, a last
// line without its end, template directives (%{ if }), heredocs within templates,
// the rarer escapes and number forms, and what modernize would rewrite.
type fastFormatter struct {
	layout
	pos  int        // behind the token at hand
	kind layoutKind // of the token at hand; comments are skipped, those to the line's end are newlines
	text []byte     // of the token at hand

	newlines bool // whether they are tokens here or just space
	braces   int  // open in the innermost template's expression
	template bool // whether we are in one

	// As nesting counts, so that what is accepted here is accepted there too.
	depth     int
	operators int // since the innermost bracket opened or its last item began
}

// formatFast formats source, or reports that it is not for it.
func formatFast(src []byte) ([]byte, bool) {
	f, ok := scanFast(src)
	if !ok {
		return nil, false
	}
	return f.result()
}

// scanFast reads source, or reports that it is not for it. What it reads is not
// nested too deeply.
func scanFast(src []byte) (*fastFormatter, bool) {
	if len(src) == 0 || src[len(src)-1] != '\n' || bytes.IndexByte(src, '\r') >= 0 {
		return nil, false
	}
	f := &fastFormatter{layout: newLayout(src)}
	return f, f.file()
}

// is reports whether the token at hand is of a kind.
func (f *fastFormatter) is(k layoutKind) bool { return f.peek() == k }

// peek is the kind of the token at hand, behind newlines where they are space.
func (f *fastFormatter) peek() layoutKind {
	for f.kind == layoutNewline && !f.newlines {
		f.advance()
	}
	return f.kind
}

// take advances behind a token of a kind, if that is at hand.
func (f *fastFormatter) take(k layoutKind) bool {
	if f.peek() != k {
		return false
	}
	f.advance()
	return true
}

// advance reads the next token and adds it to the layout.
func (f *fastFormatter) advance() {
	for {
		src, start := f.src, f.pos
		for start < len(src) && (src[start] == ' ' || src[start] == '\t') {
			start++
		}
		if start == len(src) {
			f.kind, f.text = layoutEOF, nil
			return
		}
		kind, end := f.scan(start)
		if kind == layoutBad {
			f.kind, f.text = layoutBad, nil
			return
		}
		f.pos, f.text = end, src[start:end]
		columns := end - start
		if kind == layoutBlockComment || kind == layoutLineComment {
			if !ascii(f.text) {
				if !utf8.Valid(f.text) {
					f.kind = layoutBad
					return
				}
				columns = columnsOf(f.text)
			}
			f.add(kind, start, end, columns)
			if kind == layoutBlockComment {
				continue
			}
			f.kind = layoutNewline
			return
		}
		f.add(kind, start, end, columns)
		f.kind = kind
		return
	}
}

// scan finds the kind and the end of the token at start.
func (f *fastFormatter) scan(start int) (layoutKind, int) {
	src := f.src
	c := src[start]
	switch {
	case isLetter(c):
		end := start + 1
		for isLetter(src[end]) || isDigit(src[end]) || src[end] == '-' {
			end++
		}
		if src[end] >= utf8.RuneSelf {
			return layoutBad, 0
		}
		if end-start == 2 && c == 'i' && src[start+1] == 'n' {
			return layoutIn, end
		}
		return layoutIdent, end
	case isDigit(c):
		return scanNumber(src, start)
	case c == '}':
		return f.scanClosingBrace(start)
	case c == '{':
		f.braces++
		return layoutOBrace, start + 1
	case c == '#', c == '/' && (src[start+1] == '/' || src[start+1] == '*'):
		return scanComment(src, start)
	case c == '<' && src[start+1] == '<':
		return scanHeredocStart(src, start)
	}
	return scanSymbol(src, start)
}

// scanClosingBrace tells the end of a template's sequence from a brace.
func (f *fastFormatter) scanClosingBrace(start int) (layoutKind, int) {
	if f.template && f.braces == 0 {
		return layoutSeqEnd, start + 1
	}
	f.braces--
	return layoutCBrace, start + 1
}

func scanSymbol(src []byte, start int) (layoutKind, int) {
	next := byte(0) // a symbol is never the last byte, which is a newline
	if start+1 < len(src) {
		next = src[start+1]
	}
	two := func(second byte, long, short layoutKind) (layoutKind, int) {
		if next == second {
			return long, start + 2
		}
		return short, start + 1
	}
	switch src[start] {
	case '\n':
		return layoutNewline, start + 1
	case '"':
		return layoutOQuote, start + 1
	case '=':
		if next == '>' {
			return layoutFatArrow, start + 2
		}
		return two('=', layoutOperator, layoutEqual)
	case ',':
		return layoutComma, start + 1
	case '.':
		if next == '.' {
			if start+2 < len(src) && src[start+2] == '.' {
				return layoutEllipsis, start + 3
			}
			return layoutBad, 0
		}
		return layoutDot, start + 1
	case '[':
		return layoutOBrack, start + 1
	case ']':
		return layoutCBrack, start + 1
	case '(':
		return layoutOParen, start + 1
	case ')':
		return layoutCParen, start + 1
	case ':':
		return two(':', layoutDoubleColon, layoutColon)
	case '?':
		return layoutQuestion, start + 1
	case '!':
		return two('=', layoutOperator, layoutBang)
	case '-':
		return layoutMinus, start + 1
	case '*':
		return layoutStar, start + 1
	case '+', '/', '%':
		return layoutOperator, start + 1
	case '<', '>':
		return two('=', layoutOperator, layoutOperator)
	case '&':
		return two('&', layoutOperator, layoutBad)
	case '|':
		return two('|', layoutOperator, layoutBad)
	}
	return layoutBad, 0
}

// scanNumber takes digits with a fraction and an exponent of up to three digits.
func scanNumber(src []byte, start int) (layoutKind, int) {
	digits := func(at int) int {
		for isDigit(src[at]) {
			at++
		}
		return at
	}
	end := digits(start)
	if src[end] == '.' {
		switch next := src[end+1]; {
		case isDigit(next):
			end = digits(end + 1)
			if src[end] == '.' {
				return layoutBad, 0
			}
		case next == '.' || next == 'e' || next == 'E':
			return layoutBad, 0
		}
	}
	if src[end] == 'e' || src[end] == 'E' {
		exponent := end + 1
		if src[exponent] == '+' || src[exponent] == '-' {
			exponent++
		}
		end = digits(exponent)
		if end == exponent || end-exponent > 3 || src[end] == '.' {
			return layoutBad, 0
		}
	}
	if isLetter(src[end]) || src[end] >= utf8.RuneSelf || end-start > 50 {
		return layoutBad, 0
	}
	return layoutNumber, end
}

func scanComment(src []byte, start int) (layoutKind, int) {
	if src[start] == '/' && src[start+1] == '*' {
		length := bytes.Index(src[start+2:], []byte("*/"))
		if length < 0 {
			return layoutBad, 0
		}
		return layoutBlockComment, start + 2 + length + 2
	}
	return layoutLineComment, start + bytes.IndexByte(src[start:], '\n') + 1
}

// scanHeredocStart takes <<MARKER or <<-MARKER with the end of its line.
func scanHeredocStart(src []byte, start int) (layoutKind, int) {
	at := start + 2
	if src[at] == '-' {
		at++
	}
	if !isLetter(src[at]) {
		return layoutBad, 0
	}
	for isLetter(src[at]) || isDigit(src[at]) || src[at] == '-' {
		at++
	}
	if src[at] != '\n' {
		return layoutBad, 0
	}
	return layoutOHeredoc, at + 1
}

func isLetter(c byte) bool { return c|0x20-'a' < 26 || c == '_' }

func isDigit(c byte) bool { return c-'0' < 10 }

func ascii(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
