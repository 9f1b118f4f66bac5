package terminal

import (
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
)

func TestSnippets(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for _, c := range []struct {
		name, src         string
		from, to          int
		code, highlighted string
		line              int
	}{
		{"one word", "a = 1\nb = 22\nc = 3\n", 10, 12, "b = 22", "22", 2},
		{"two lines", "a = [\n  1,\n]\nb = 2\n", 4, 9, "a = [\n  1,", "[\n  1", 1},
		{"with the end of its line", "a = 1\nb = 2\n", 4, 6, "a = 1", "1", 1},
		{"the end of the file", "a = 1", 5, 5, "a = 1", "", 1},
		{"nothing", "", 0, 0, "", "", 1},
		{"a long line", "a = " + long, 4, 6, ("a = " + long)[:maxSnippet], "xx", 1},
		{"far out on a long line", long + "yy" + long, 10_000, 10_002, ("yy" + long)[:maxSnippet], "yy", 1},
		{"a long range", "a = " + long, 0, 10_004, ("a = " + long)[:maxSnippet], ("a = " + long)[:maxSnippet], 1},
		{"a character cut in two", strings.Repeat("x", maxSnippet-1) + "é", 0, 1, strings.Repeat("x", maxSnippet-1), "x", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := func(b int) hcl.Pos { return hcl.Pos{Line: c.line, Byte: b} }
			s := snippetOf(&hcl.File{Bytes: []byte(c.src)}, &hcl.Diagnostic{Subject: &hcl.Range{Start: at(c.from), End: at(c.to)}})
			if s == nil || s.Code != c.code || s.Code[s.HighlightStartOffset:s.HighlightEndOffset] != c.highlighted || s.StartLine != c.line {
				t.Errorf("got %+v, want the code %q with %q", s, c.code, c.highlighted)
			}
		})
	}
	if s := snippetOf(&hcl.File{Bytes: []byte("a")}, &hcl.Diagnostic{Subject: &hcl.Range{End: hcl.Pos{Byte: 2}}}); s != nil {
		t.Errorf("of a range beyond the file: got %+v, want none", s)
	}
}
