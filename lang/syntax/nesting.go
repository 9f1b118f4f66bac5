package syntax

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/lang/diagnose"
)

// MaxNesting bounds how deep expressions and blocks may be nested. The parser
// and the evaluator recurse, and a stack that overflows cannot be reported.
const MaxNesting = 1000

// CheckConfig reports source that is nested too deeply to be parsed. It counts
// on tokens: brackets, templates and their directives, and operators, each of
// which may add a level until the expression that they are part of ends.
func CheckConfig(src []byte, filename string) hcl.Diagnostics {
	tokens, _ := hclsyntax.LexConfig(src, filename, hcl.InitialPos)
	return CheckTokens(tokens)
}

// CheckTemplate is checkNesting for the source of a template.
func CheckTemplate(src []byte, filename string) hcl.Diagnostics {
	tokens, _ := hclsyntax.LexTemplate(src, filename, hcl.InitialPos)
	return CheckTokens(tokens)
}

// CheckExpression is checkNesting for the source of one expression.
func CheckExpression(src []byte, filename string) hcl.Diagnostics {
	tokens, _ := hclsyntax.LexExpression(src, filename, hcl.InitialPos)
	return CheckTokens(tokens)
}

// CheckJSON is checkNesting for JSON, whose parser recurses as well.
func CheckJSON(src []byte, filename string) hcl.Diagnostics {
	depth := 0
	for i, c := range JSONStructure(src) {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > MaxNesting {
			at := hcl.Pos{Line: 1 + bytes.Count(src[:i], []byte{'\n'}), Column: 1, Byte: i}
			return hcl.Diagnostics{diagnose.ErrorAt(hcl.Range{Filename: filename, Start: at, End: at}, "Nested too deeply",
				fmt.Sprintf("More than %d brackets are open here.", MaxNesting))}
		}
	}
	return nil
}

// JSONStructure are the bytes of a JSON text that are no part of its strings, with
// their places.
func JSONStructure[T string | []byte](text T) iter.Seq2[int, byte] {
	return func(yield func(int, byte) bool) {
		quoted := false
		for i := 0; i < len(text); i++ {
			switch c := text[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case !quoted && !yield(i, c):
				return
			}
		}
	}
}

// nesting counts the levels that are open.
type nesting struct {
	depth int
	open  []bracket
}

// bracket is an open bracket, template or directive.
type bracket struct {
	kind      hclsyntax.TokenType
	operators int // levels that operators added since the last item began
}

// CheckTokens reports tokens that are nested too deeply to be parsed.
func CheckTokens(tokens hclsyntax.Tokens) hcl.Diagnostics {
	n := nesting{open: []bracket{{kind: hclsyntax.TokenOBrace}}}
	for i, t := range tokens {
		next := ""
		if i+1 < len(tokens) {
			next = string(tokens[i+1].Bytes)
		}
		n.read(t, next)
		if t.Type == hclsyntax.TokenNumberLit {
			if d := hugeNumber(t); d != nil {
				return hcl.Diagnostics{d}
			}
		}
		if n.depth > MaxNesting {
			return hcl.Diagnostics{diagnose.ErrorAt(t.Range, "Nested too deeply", fmt.Sprintf(
				"More than %d levels of brackets, operators or templates are open here. Split the expression with locals.", MaxNesting))}
		}
	}
	return nil
}

func (n *nesting) read(t hclsyntax.Token, next string) {
	kind := t.Type
	if kind == hclsyntax.TokenComment && bytes.HasSuffix(t.Bytes, []byte("\n")) {
		kind = hclsyntax.TokenNewline
	}
	switch kind {
	case hclsyntax.TokenOBrack, hclsyntax.TokenOParen:
		n.operator() // an index or a call nests what stands before it
		n.push(kind)
	case hclsyntax.TokenOBrace, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp:
		n.push(kind)
	case hclsyntax.TokenTemplateControl:
		n.directive(next)
	case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen,
		hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
		n.pop()
	case hclsyntax.TokenComma:
		n.reset()
	case hclsyntax.TokenNewline:
		if n.top().kind == hclsyntax.TokenOBrace {
			n.reset()
		}
	case hclsyntax.TokenBang, hclsyntax.TokenMinus, hclsyntax.TokenPlus, hclsyntax.TokenStar, hclsyntax.TokenSlash,
		hclsyntax.TokenPercent, hclsyntax.TokenQuestion, hclsyntax.TokenAnd, hclsyntax.TokenOr, hclsyntax.TokenEqualOp,
		hclsyntax.TokenNotEqual, hclsyntax.TokenLessThan, hclsyntax.TokenLessThanEq, hclsyntax.TokenGreaterThan,
		hclsyntax.TokenGreaterThanEq:
		n.operator()
	}
}

// directive counts %{ if } and %{ for } up to their ends; the directive itself
// is a bracket that its closing brace ends.
func (n *nesting) directive(keyword string) {
	switch keyword {
	case "if", "for":
		n.operator()
	case "endif", "endfor":
		if top := n.top(); top.operators > 0 {
			top.operators--
			n.depth--
		}
	}
	n.push(hclsyntax.TokenTemplateControl)
}

func (n *nesting) top() *bracket { return &n.open[len(n.open)-1] }

func (n *nesting) push(kind hclsyntax.TokenType) {
	n.open = append(n.open, bracket{kind: kind})
	n.depth++
}

func (n *nesting) pop() {
	if len(n.open) == 1 {
		return // a closing bracket too many is the parser's to report
	}
	n.depth -= 1 + n.top().operators
	n.open = n.open[:len(n.open)-1]
}

func (n *nesting) operator() {
	n.top().operators++
	n.depth++
}

func (n *nesting) reset() {
	n.depth -= n.top().operators
	n.top().operators = 0
}

// MaxNumber is the largest exponent of a number, in base 10.
const MaxNumber = 10_000

// hugeNumber reports a literal that takes long to read and longer to write.
func hugeNumber(t hclsyntax.Token) *hcl.Diagnostic {
	text := strings.ToLower(string(t.Bytes))
	_, exponent, ok := strings.Cut(text, "e")
	if !ok {
		return nil
	}
	if n, err := strconv.Atoi(strings.TrimLeft(exponent, "+-")); err != nil || n > MaxNumber {
		return diagnose.ErrorAt(t.Range, "Number too large", fmt.Sprintf("The exponent of a number may be %d at most.", MaxNumber))
	}
	return nil
}

// maxSyntaxErrors bounds the errors of one file: one that is no HCL at all
// would have an error on every line.
const maxSyntaxErrors = 10

// FirstErrors keeps the first errors of a file and counts the others.
func FirstErrors(diags hcl.Diagnostics, shown string) hcl.Diagnostics {
	more := len(diags) - maxSyntaxErrors
	if more <= 0 {
		return diags
	}
	rest := &hcl.Diagnostic{
		Severity: hcl.DiagError, Subject: diags[maxSyntaxErrors].Subject, Summary: "More syntax errors",
		Detail: fmt.Sprintf("And %d more like these in %s. If it is not meant to be HCL, name another file.", more, shown),
	}
	return append(slices.Clip(diags[:maxSyntaxErrors]), rest)
}
