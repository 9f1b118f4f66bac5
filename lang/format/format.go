package format

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/lang/syntax"
)

// Source returns the canonical layout of a file: modern forms in place of some old
// ones (see modernize), laid out by hclwrite. Source that does not parse is returned as
// it is, with the diagnostics; the filename serves only them. Where nothing changes,
// the result is src itself.
//
// The libraries take some hundred bytes of memory for each byte of the file, so the
// size, the depth and the widening of a file are bounded.
func Source(src []byte, filename string) ([]byte, hcl.Diagnostics) {
	if len(src) > files.MaxFileSize {
		return src, hcl.Diagnostics{diagnose.ErrorAt(wholeFile(filename), "Cannot be formatted",
			fmt.Sprintf("A file of more than %d MiB cannot be formatted. Split it.", files.MaxFileSize>>20))}
	}
	tokens, _ := hclsyntax.LexConfig(src, filename, hcl.InitialPos)
	if diags := append(syntax.CheckTokens(tokens), checkHeredocs(tokens)...); diags.HasErrors() {
		return src, diags
	}
	file, diags := hclsyntax.ParseConfig(src, filename, hcl.InitialPos)
	if diags.HasErrors() {
		return src, diags
	}
	modern := modernize(src, file.Body.(*hclsyntax.Body))
	tokens, _ = hclsyntax.LexConfig(modern, filename, hcl.InitialPos)
	if widening(tokens) > maxWidening+4*len(src) {
		return src, hcl.Diagnostics{diagnose.ErrorAt(wholeFile(filename), "Cannot be formatted",
			"Formatted, this file would be many times as large as it is: many lines are deep in brackets, or aligned with a very long one. Break that one.")}
	}
	out := hclwrite.Format(bytes.TrimPrefix(modern, []byte("\xef\xbb\xbf")))
	switch {
	case bytes.Equal(out, src):
		return src, nil
	case !sameTokens(tokens, out):
		return src, nil // in odd cases a space makes two numbers of one: 1 .5
	}
	return out, nil
}

// maxWidening is how many bytes the layout may add to four times the source's:
// many lines that are deep down, or aligned with a long one, multiply.
const maxWidening = 1 << 20

// widening bounds the spaces that the layout puts before lines, equals signs and
// trailing comments: of each group of lines that are aligned with each other the
// number of lines times the widest.
func widening(tokens hclsyntax.Tokens) int {
	total, depth, lines, widest := 0, 0, 0, 0
	width, indent, aligned := 0, 0, false // of the line
	for _, t := range tokens {
		width += len(t.Bytes) + 1
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen:
			depth++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen:
			depth = max(depth-1, 0)
		case hclsyntax.TokenEqual:
			aligned = true
		}
		if t.Type != hclsyntax.TokenNewline && !endsLine(t) {
			continue
		}
		if t.Type == hclsyntax.TokenComment {
			aligned = true
		}
		if aligned {
			lines, widest = lines+1, max(widest, width)
		} else {
			total, lines, widest = total+lines*widest, 0, 0
		}
		total += 2 * indent
		width, indent, aligned = 0, depth, false
	}
	return total + lines*widest
}

func endsLine(t hclsyntax.Token) bool {
	return t.Type == hclsyntax.TokenComment && bytes.HasSuffix(t.Bytes, []byte("\n"))
}

func wholeFile(filename string) hcl.Range {
	return hcl.Range{Filename: filename, Start: hcl.InitialPos, End: hcl.InitialPos}
}

// sameTokens reports whether source has the tokens that it is to have.
func sameTokens(want hclsyntax.Tokens, src []byte) bool {
	got, _ := hclsyntax.LexConfig(src, "", hcl.InitialPos)
	return slices.EqualFunc(got, want, func(x, y hclsyntax.Token) bool {
		return x.Type == y.Type && bytes.Equal(x.Bytes, y.Bytes)
	})
}

// maxHeredoc bounds the lines of a heredoc that the library parses: it takes
// the square of their number in time.
const maxHeredoc = 10_000

func checkHeredocs(tokens hclsyntax.Tokens) hcl.Diagnostics {
	lines := 0
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenStringLit:
			lines++
		case hclsyntax.TokenOHeredoc:
			lines = 0
		}
		if lines > maxHeredoc {
			return hcl.Diagnostics{diagnose.ErrorAt(t.Range, "Cannot be formatted", fmt.Sprintf(
				"A heredoc of more than %d lines cannot be formatted here. Put it into a file of its own and read it with file().", maxHeredoc))}
		}
	}
	return nil
}
