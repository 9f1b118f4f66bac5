package format

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"golang.org/x/tools/txtar"
)

// failer is what checkFormat fails: a test, or a property's try.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkFormat holds Format against the library: what does not parse stays, and the
// layout is hclwrite's. Formatted again, nothing changes.
func checkFormat(t failer, src []byte) {
	t.Helper()
	once, diags := Source(src, "x.hcl")
	if diags.HasErrors() {
		if !bytes.Equal(once, src) {
			t.Fatalf("what does not parse was changed to %q", once)
		}
		return
	}
	file, _ := hclsyntax.ParseConfig(src, "x.hcl", hcl.InitialPos)
	modern := modernize(src, file.Body.(*hclsyntax.Body))
	want := hclwrite.Format(modern)
	if tokens, _ := hclsyntax.LexConfig(modern, "", hcl.InitialPos); !sameTokens(tokens, want) {
		modern, want = src, src
	}
	if !bytes.Equal(once, want) {
		t.Fatalf("from %q\ngot  %q\nwant %q", src, once, want)
	}
	if got, want := significant(once), significant(modern); !bytes.Equal(got, want) {
		t.Fatalf("tokens changed\nfrom %q\nto   %q", want, got)
	}
	twice, diags := Source(once, "x.hcl")
	if diags.HasErrors() {
		t.Fatalf("what was formatted does not parse: %v\n%q", diags, once)
	}
	if !bytes.Equal(once, twice) {
		t.Fatalf("formatted again it changes\nsource %q\nonce   %q\ntwice  %q", src, once, twice)
	}
}

// significant is the text of all tokens but the spaces between them.
func significant(src []byte) []byte {
	tokens, _ := hclsyntax.LexConfig(src, "x.hcl", hcl.InitialPos)
	var out []byte
	for _, token := range tokens {
		out = append(out, bytes.TrimSpace(token.Bytes)...)
		out = append(out, 0)
	}
	return out
}

// formatCorpus is every file of testdata/format, as it is and squeezed.
func formatCorpus(t testing.TB) [][]byte {
	t.Helper()
	archives, err := filepath.Glob("testdata/format/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	var all [][]byte
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archive.Files {
			all = append(all, file.Data, bytes.ReplaceAll(file.Data, []byte(" "), nil), bytes.ReplaceAll(file.Data, []byte(" "), []byte("\t ")))
		}
	}
	return all
}

func TestFormatGoldens(t *testing.T) {
	archives, err := filepath.Glob("testdata/format/*.txtar")
	if err != nil || len(archives) < 6 {
		t.Fatalf("archives %v, error %v", archives, err)
	}
	for _, path := range archives {
		t.Run(filepath.Base(path), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files := archive.Files
			if len(files) != 2 || files[0].Name != "in.hcl" || files[1].Name != "want.hcl" {
				t.Fatal("want an archive of in.hcl and want.hcl")
			}
			got, diags := Source(files[0].Data, "in.hcl")
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			if diff := cmp.Diff(string(files[1].Data), string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			checkFormat(t, files[0].Data)
		})
	}
}

// TestFormatEdges are what an archive cannot hold.
func TestFormatEdges(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"nothing", "", ""},
		{"an end of line", "\n", "\n"},
		{"no end of line", "a=1", "a = 1"},
		{"spaces after the last line", "a=1\n   ", "a = 1\n   "},
		{"a comment at the end", "a=1/* c */", "a = 1 /* c */"},
		{"only a comment", " # c", "# c"},
		{"tabs at the end", "a=1\t", "a = 1 "},
		{"carriage returns", "a=1\r\nbb=2\r\n", "a  = 1\r\nbb = 2\r\n"},
		{"a byte order mark", "\xef\xbb\xbfa=1\n", "a = 1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, diags := Source([]byte(c.src), "x.hcl")
			if diags.HasErrors() || string(got) != c.want {
				t.Errorf("got %q, %v, want %q", got, diags, c.want)
			}
			checkFormat(t, []byte(c.src))
		})
	}
}

// TestFormatHostile: what is made to be slow or deep is neither, or rejected.
func TestFormatHostile(t *testing.T) {
	repeat := strings.Repeat
	for _, c := range []struct {
		name, src string
		rejected  string
	}{
		{"deep lists", "a = " + repeat("[", 5000) + repeat("]", 5000) + "\n", "Nested too deeply"},
		{"deep blocks", repeat("a {\n", 5000) + repeat("}\n", 5000), "Nested too deeply"},
		{"deep templates", "a = " + repeat(`"x${`, 5000) + "1" + repeat(`}"`, 5000) + "\n", "Nested too deeply"},
		{"many signs", "a = " + repeat("-", 5000) + "1\n", "Nested too deeply"},
		{"many operators", "a = 1" + repeat("+1", 5000) + "\n", "Nested too deeply"},
		{"a heredoc of many lines", "a = <<E\n" + repeat("x\n", 9_000) + "E\n", ""},
		{"a longer heredoc", "a = <<E\n" + repeat("x\n", 500_000) + "E\n", "Cannot be formatted"},
		{"a long heredoc with a directive", "a = <<E\n" + repeat("x\n", 200_000) + "%{ if a }%{ endif }\nE\n", "Cannot be formatted"},
		{"deep lines", "a = " + repeat("[\n", 400) + repeat("1,\n", 100_000) + repeat("]", 400) + "\n", "Cannot be formatted"},
		{"a long name", "a" + repeat("a", 100_000) + " = 1\n" + attributes(10_000), "Cannot be formatted"},
		{"a long list", "a = [" + repeat("f(1), ", 20_000) + "]\n", ""},
		{"many attributes", attributes(10_000), ""},
		{"many of one name", attributes(10_000) + "a7 = 1\n", "Attribute redefined"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, diags := Source([]byte(c.src), "x.hcl")
			switch {
			case c.rejected == "" && diags.HasErrors():
				t.Errorf("rejected: %v", diags)
			case c.rejected != "" && (!diags.HasErrors() || diags[0].Summary != c.rejected):
				t.Errorf("got %v, want %q", diags, c.rejected)
			case c.rejected != "" && string(out) != c.src:
				t.Error("what was rejected has changed")
			}
		})
	}
}

func attributes(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d = %d # c\n", i, i)
	}
	return b.String()
}
