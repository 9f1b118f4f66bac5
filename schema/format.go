package schema

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Format returns the canonical layout of a file: indentation, aligned equals
// signs, spaces, and modern forms in place of some old ones (see modernize).
// Source that does not parse is returned as it is, with the diagnostics; the
// filename serves only them. Where nothing changes, the result is src itself.
//
// The layout is that of hclwrite.Format to the byte. Most files do not need it:
// see fastFormatter, which is tested against it.
func Format(src []byte, filename string) ([]byte, hcl.Diagnostics) {
	if out, ok := formatFast(src); ok {
		return out, nil
	}
	return formatByLibrary(src, filename)
}

// formatByLibrary is Format for whatever may be in a file. The library takes
// some hundred bytes of memory for each of the file, so that there is a limit.
func formatByLibrary(src []byte, filename string) ([]byte, hcl.Diagnostics) {
	if len(src) > maxFileSize {
		return src, hcl.Diagnostics{errorAt(wholeFile(filename), "Cannot be formatted",
			fmt.Sprintf("A file of more than %d MiB is formatted only if it is simple and free of errors. Split it.", maxFileSize>>20))}
	}
	tokens, _ := hclsyntax.LexConfig(src, filename, hcl.InitialPos)
	if diags := append(checkNestingOf(tokens), checkHeredocs(tokens)...); diags.HasErrors() {
		return src, diags
	}
	file, diags := hclsyntax.ParseConfig(src, filename, hcl.InitialPos)
	if diags.HasErrors() {
		return src, diags
	}
	modern := modernize(src, file.Body.(*hclsyntax.Body))
	if out, ok := formatFast(modern); ok {
		return out, nil
	}
	tokens, _ = hclsyntax.LexConfig(modern, filename, hcl.InitialPos)
	modern = bytes.TrimPrefix(modern, []byte("\xef\xbb\xbf"))
	out, ok := layoutTokens(modern, tokens)
	switch {
	case !ok:
		return src, hcl.Diagnostics{errorAt(wholeFile(filename), "Cannot be formatted",
			"Formatted, this file would be many times as large as it is: many lines are deep in brackets, or aligned with a very long one. Break that one.")}
	case !sameTokens(tokens, out):
		return src, nil // in odd cases a space makes two numbers of one: 1 .5
	}
	return out, nil
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
			return hcl.Diagnostics{errorAt(t.Range, "Cannot be formatted", fmt.Sprintf(
				"A heredoc of more than %d lines cannot be formatted here. Put it into a file of its own and read it with file().", maxHeredoc))}
		}
	}
	return nil
}
