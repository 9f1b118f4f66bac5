package schema

// layoutKind is the kind of a token, as far as its layout depends on it.
type layoutKind uint8

const (
	layoutNone layoutKind = iota // before the first token of a line
	layoutNewline
	layoutLineComment // with its newline
	layoutBlockComment
	layoutIdent
	layoutIn // the identifier "in"
	layoutNumber
	layoutOQuote
	layoutCQuote
	layoutLiteral // of a quoted or heredoc template
	layoutOHeredoc
	layoutCHeredoc
	layoutInterp
	layoutSeqEnd
	layoutOBrace
	layoutCBrace
	layoutOBrack
	layoutCBrack
	layoutOParen
	layoutCParen
	layoutDot
	layoutComma
	layoutEllipsis
	layoutDoubleColon
	layoutEqual
	layoutColon
	layoutQuestion
	layoutFatArrow
	layoutBang
	layoutMinus
	layoutStar
	layoutOperator // any other binary one
	layoutEOF
	layoutBad // not understood
	layoutKinds
)

// layoutSet is a set of kinds.
type layoutSet uint64

func (s layoutSet) has(k layoutKind) bool { return s>>k&1 == 1 }

// bracketChange is what a token adds to the number of open brackets.
func bracketChange(k layoutKind) int {
	const (
		opening layoutSet = 1<<layoutInterp | 1<<layoutOBrace | 1<<layoutOBrack | 1<<layoutOParen
		closing layoutSet = 1<<layoutSeqEnd | 1<<layoutCBrace | 1<<layoutCBrack | 1<<layoutCParen
	)
	return int(opening>>k&1) - int(closing>>k&1)
}

// spacing says for each two neighbouring tokens how many spaces stand between
// them: 0 or 1, or askBefore where the token before the two has a say.
type spacing [layoutKinds][layoutKinds]uint8

const askBefore = 2

func newSpacing() *spacing {
	var s spacing
	for left := range layoutKinds {
		for right := range layoutKinds {
			switch {
			case left == layoutIn || left == layoutMinus:
				s[left][right] = askBefore
			case spaceBetween(layoutNone, left, right):
				s[left][right] = 1
			}
		}
	}
	return &s
}

// spaceBetween decides as hclwrite does, rule for rule and in its order.
func spaceBetween(before, left, right layoutKind) bool {
	const (
		idents   layoutSet = 1<<layoutIdent | 1<<layoutIn
		inside   layoutSet = 1<<layoutLiteral | 1<<layoutOQuote | 1<<layoutOHeredoc
		inside2  layoutSet = 1<<layoutLiteral | 1<<layoutCQuote | 1<<layoutCHeredoc
		indexed  layoutSet = idents | 1<<layoutNumber
		noSpace  layoutSet = 1<<layoutNewline | 1<<layoutNone | 1<<layoutDot
		separate layoutSet = 1<<layoutComma | 1<<layoutEllipsis
	)
	switch {
	case right == layoutNewline:
		return false
	case idents.has(left) && right == layoutOParen:
		return false // a call
	case idents.has(left) && right == layoutDoubleColon, left == layoutDoubleColon && idents.has(right):
		return false
	case left == layoutDot, noSpace.has(right), separate.has(right):
		return false
	case left == layoutComma:
		return true
	case inside.has(left), inside2.has(right):
		return false
	case left == layoutIn && idents.has(before):
		return true // the keyword, even before a bracket
	case right == layoutOBrack && (indexed.has(left) || bracketChange(left) < 0):
		return false // an index
	case left == layoutBang:
		return false
	case left == layoutMinus:
		return !negates(before)
	case left == layoutOBrace || right == layoutCBrace:
		return left != layoutOBrace || right != layoutCBrace
	case left == layoutInterp && right == layoutOBrace, left == layoutCBrace && right == layoutSeqEnd:
		return true
	case left == layoutSeqEnd && right == layoutInterp:
		return false
	}
	return bracketChange(left) <= 0 && bracketChange(right) >= 0
}

// negates reports whether a minus after a token is a sign rather than a
// subtraction.
func negates(before layoutKind) bool {
	const signs layoutSet = 1<<layoutNone | 1<<layoutOParen | 1<<layoutOBrace | 1<<layoutOBrack | 1<<layoutEqual |
		1<<layoutColon | 1<<layoutComma | 1<<layoutQuestion | 1<<layoutStar | 1<<layoutMinus | 1<<layoutOperator | 1<<layoutBang
	return signs.has(before)
}
