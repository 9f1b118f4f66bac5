package schema

import (
	"bytes"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// layoutKindOf is the kind of one of the library's tokens.
func layoutKindOf(t hclsyntax.Token) layoutKind {
	switch t.Type {
	case hclsyntax.TokenComment:
		if bytes.HasSuffix(t.Bytes, []byte("\n")) {
			return layoutLineComment
		}
		return layoutBlockComment
	case hclsyntax.TokenIdent:
		if string(t.Bytes) == "in" {
			return layoutIn
		}
		return layoutIdent
	case hclsyntax.TokenNewline:
		return layoutNewline
	case hclsyntax.TokenNumberLit:
		return layoutNumber
	case hclsyntax.TokenOQuote:
		return layoutOQuote
	case hclsyntax.TokenCQuote:
		return layoutCQuote
	case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit:
		return layoutLiteral
	case hclsyntax.TokenOHeredoc:
		return layoutOHeredoc
	case hclsyntax.TokenCHeredoc:
		return layoutCHeredoc
	case hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
		return layoutInterp
	case hclsyntax.TokenTemplateSeqEnd:
		return layoutSeqEnd
	case hclsyntax.TokenOBrace:
		return layoutOBrace
	case hclsyntax.TokenCBrace:
		return layoutCBrace
	case hclsyntax.TokenOBrack:
		return layoutOBrack
	case hclsyntax.TokenCBrack:
		return layoutCBrack
	case hclsyntax.TokenOParen:
		return layoutOParen
	case hclsyntax.TokenCParen:
		return layoutCParen
	case hclsyntax.TokenDot:
		return layoutDot
	case hclsyntax.TokenComma:
		return layoutComma
	case hclsyntax.TokenEllipsis:
		return layoutEllipsis
	case hclsyntax.TokenDoubleColon:
		return layoutDoubleColon
	case hclsyntax.TokenEqual:
		return layoutEqual
	case hclsyntax.TokenColon:
		return layoutColon
	case hclsyntax.TokenQuestion:
		return layoutQuestion
	case hclsyntax.TokenFatArrow:
		return layoutFatArrow
	case hclsyntax.TokenBang:
		return layoutBang
	case hclsyntax.TokenMinus:
		return layoutMinus
	case hclsyntax.TokenStar:
		return layoutStar
	}
	return layoutOperator // what parses has no others
}
