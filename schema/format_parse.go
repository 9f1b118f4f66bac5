package schema

import "slices"

// The grammar of the native syntax, as far as fastFormatter understands it.
// Each function stands at the first token of what it reads, ends behind the
// last, and reports whether it understood everything.

// attributeNames are those of one body, as hashes: two that are equal are for
// the real parser to look at.
type attributeNames struct {
	few  []uint64
	many map[uint64]struct{} // instead, once there are more than a few
}

// add reports whether the name is new.
func (n *attributeNames) add(name []byte) bool {
	hash := uint64(14695981039346656037) // FNV-1a
	for _, c := range name {
		hash = (hash ^ uint64(c)) * 1099511628211
	}
	if n.many == nil {
		if slices.Contains(n.few, hash) {
			return false
		}
		if n.few = append(n.few, hash); len(n.few) > 32 {
			n.many = make(map[uint64]struct{}, 2*len(n.few))
			for _, h := range n.few {
				n.many[h] = struct{}{}
			}
		}
		return true
	}
	if _, twice := n.many[hash]; twice {
		return false
	}
	n.many[hash] = struct{}{}
	return true
}

// file reads the whole source.
func (f *fastFormatter) file() bool {
	f.newlines = true
	f.advance()
	return f.body(layoutEOF, "")
}

// body reads attributes and blocks up to end, which stays at hand. It is that
// of a block of a type that stands in the file itself, else of none.
func (f *fastFormatter) body(end layoutKind, of string) bool {
	var names attributeNames
	for f.kind != end {
		switch {
		case f.kind == layoutNewline:
			f.advance()
			continue
		case f.kind != layoutIdent && f.kind != layoutIn:
			return false
		}
		f.operators, f.depth = 0, f.depth-f.operators
		name := f.text
		f.advance()
		if f.kind == layoutEqual {
			if !names.add(name) || !f.attribute(of == "variable" && string(name) == "type") {
				return false
			}
		} else if !f.block(string(name), end == layoutEOF) {
			return false
		}
		if f.kind != layoutEOF && !f.take(layoutNewline) {
			return false
		}
	}
	return true
}

// block reads labels and the body of a block.
func (f *fastFormatter) block(name string, top bool) bool {
	for f.kind == layoutOQuote {
		if !f.label() {
			return false
		}
	}
	if f.kind != layoutOBrace || f.depth >= maxNesting {
		return false // modernize puts labels in quotes
	}
	saved := f.open()
	f.advance()
	of := ""
	if top {
		of = name
	}
	if f.kind == layoutNewline || f.kind == layoutCBrace {
		if !f.body(layoutCBrace, of) {
			return false
		}
	} else if !f.onlyAttribute(of) {
		return false
	}
	f.close(saved)
	return f.take(layoutCBrace)
}

// onlyAttribute is the body of a block on a single line.
func (f *fastFormatter) onlyAttribute(of string) bool {
	if f.kind != layoutIdent && f.kind != layoutIn {
		return false
	}
	isType := of == "variable" && string(f.text) == "type"
	f.advance()
	return f.kind == layoutEqual && f.attribute(isType) && f.kind == layoutCBrace
}

// label reads a quoted label without anything to escape.
func (f *fastFormatter) label() bool {
	start := f.pos
	end := start
	for c := f.src[end]; isLetter(c) || isDigit(c) || c == '-' || c == '.' || c == '/' || c == ':' || c == ' '; c = f.src[end] {
		end++
	}
	if end == start || f.src[end] != '"' {
		return false
	}
	f.add(layoutLiteral, start, end, end-start)
	f.add(layoutCQuote, end, end+1, 1)
	f.pos = end + 1
	f.advance()
	return true
}

// attribute reads an attribute from its equals sign.
func (f *fastFormatter) attribute(isType bool) bool {
	f.advance()
	if isType && !f.modernType() {
		return false
	}
	if f.kind != layoutOQuote {
		return f.expression()
	}
	lone, ok := f.quoted()
	if !ok || lone && (f.kind == layoutNewline || f.kind == layoutCBrace || f.kind == layoutEOF) {
		return false // modernize takes it out of the quotes
	}
	return f.traversals() && f.operands()
}

// modernType reports whether modernize leaves a type as it is.
func (f *fastFormatter) modernType() bool {
	if f.kind == layoutOQuote {
		return false
	}
	if name := string(f.text); name != "list" && name != "map" && name != "set" {
		return true
	}
	at := f.pos
	for f.src[at] == ' ' || f.src[at] == '\t' {
		at++
	}
	return f.src[at] == '('
}

// open notes that the bracket at hand opens a level.
func (f *fastFormatter) open() (saved int) {
	saved = f.operators
	f.operators = 0
	f.depth++
	return saved
}

func (f *fastFormatter) close(saved int) {
	f.depth -= 1 + f.operators
	f.operators = saved
}

// operator notes an operator, and reports whether the nesting is in bounds.
func (f *fastFormatter) operator() bool {
	f.operators++
	f.depth++
	return f.depth < maxNesting
}

// nextItem notes the comma between two items.
func (f *fastFormatter) nextItem() {
	f.depth -= f.operators
	f.operators = 0
}

func (f *fastFormatter) expression() bool { return f.term() && f.operands() }

// operands reads what may follow the first operand of an expression. Which
// operator binds tighter is of no matter here.
func (f *fastFormatter) operands() bool {
	const binary layoutSet = 1<<layoutOperator | 1<<layoutMinus | 1<<layoutStar
	for binary.has(f.peek()) {
		f.advance()
		if !f.operator() || !f.term() {
			return false
		}
	}
	if !f.is(layoutQuestion) {
		return true
	}
	f.advance()
	return f.operator() && f.expression() && f.take(layoutColon) && f.expression()
}

// term reads an operand with its signs and traversals.
func (f *fastFormatter) term() bool {
	for f.is(layoutMinus) || f.is(layoutBang) {
		f.advance()
		if !f.operator() {
			return false
		}
	}
	return f.operand() && f.traversals()
}

func (f *fastFormatter) operand() bool {
	if f.kind == layoutIdent || f.kind == layoutIn {
		f.advance()
		return f.call()
	}
	if f.kind == layoutOQuote {
		_, ok := f.quoted()
		return ok
	}
	if f.kind == layoutOHeredoc {
		return f.heredoc()
	}
	if f.kind == layoutOParen {
		return f.within(layoutCParen, f.expression)
	}
	if f.kind == layoutOBrack {
		return f.within(layoutCBrack, f.tuple)
	}
	if f.kind == layoutOBrace {
		return f.within(layoutCBrace, f.object)
	}
	return f.take(layoutNumber)
}

// within reads from the opening bracket at hand to the closing one.
func (f *fastFormatter) within(closing layoutKind, content func() bool) bool {
	if closing != layoutCBrace && !f.operator() || f.depth >= maxNesting {
		return false
	}
	saved, newlines := f.open(), f.newlines
	f.newlines = false
	f.advance()
	ok := content() && f.take(closing)
	f.newlines = newlines
	f.close(saved)
	return ok
}
