package diag

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"golang.org/x/tools/txtar"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestText writes the diagnostics of each archive's files, plainly and for a wide
// and a narrow terminal, with <red>, <bold> and so on for its colours.
func TestText(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			path, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var sources, goldens []txtar.File
			for _, f := range archive.Files {
				if strings.HasPrefix(f.Name, "want") {
					continue
				}
				sources = append(sources, f)
			}
			src, diags := evaluate(t, sources)
			for _, form := range []struct {
				name string
				text Text
			}{
				{"want", Text{Width: 80}},
				{"want-wide-terminal", Text{Width: 120, Color: true}},
				{"want-narrow-terminal", Text{Width: 40, Color: true}},
			} {
				form.text.Files = src.Files()
				var out bytes.Buffer
				if err := form.text.Write(&out, diags); err != nil {
					t.Fatal(err)
				}
				goldens = append(goldens, txtar.File{Name: form.name, Data: []byte(named(out.String()))})
			}
			got := &txtar.Archive{Comment: archive.Comment, Files: append(sources, goldens...)}
			if *update {
				if err := os.WriteFile(path, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(got))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func evaluate(t *testing.T, files []txtar.File) (*lang.Source, hcl.Diagnostics) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	src, diags := lang.Parse(nil)
	if diags.HasErrors() {
		return src, diags
	}
	_, more := src.Evaluate(eval.Options{})
	return src, append(diags, more...)
}

// named writes the escape sequences of colours as words.
func named(s string) string {
	words := map[string]string{"0": "-", bold: "bold", dim: "dim", red: "red", yellow: "yellow", bold + ";" + red: "bold red", bold + ";" + yellow: "bold yellow"}
	return regexp.MustCompile("\x1b\\[([0-9;]*)m").ReplaceAllStringFunc(s, func(code string) string {
		return "<" + words[strings.TrimSuffix(strings.TrimPrefix(code, "\x1b["), "m")] + ">"
	})
}

// What is written fits, whatever the source: no line is wider than the terminal,
// but for one word that is, and nothing in it acts on the terminal.
func FuzzText(f *testing.F) {
	for _, src := range []string{"a = 1", "job {", "a = \"\x1b[31m\u202e\"", "\t日本 = \"e\u0301\"", strings.Repeat("日\t", 3000), "\xff\xfe\n= ${", "a = [\r\n1,\r\n2\r\n"} {
		f.Add(src, 0, 5, 20)
		f.Add(src, 3, 3, 80)
		f.Add(src, 2, 9000, 33)
	}
	f.Fuzz(func(t *testing.T, src string, from, to, columns int) {
		file, _ := hclsyntax.ParseConfig([]byte(src), "x.hcl", hcl.InitialPos)
		d := &hcl.Diagnostic{Summary: "Summary", Detail: "Detail.", Subject: &hcl.Range{
			Filename: "x.hcl", Start: hcl.Pos{Line: 1, Byte: from}, End: hcl.Pos{Line: 1, Byte: to},
		}}
		columns = 20 + max(0, columns%200)
		text := Text{Files: map[string]*hcl.File{"x.hcl": file}, Width: columns, Color: true}
		for line := range strings.Lines(text.text(d)) {
			plain := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
			if n := widthOf(plain); n > columns && len(strings.Fields(plain)) > 2 && !strings.HasSuffix(plain, " here") {
				t.Errorf("a line of %d columns, there are %d: %q", n, columns, plain)
			}
			if plain != printable(plain) {
				t.Errorf("a line with what terminals act on: %q", plain)
			}
		}
	})
}

func TestColumns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, line  string
		from, to    int // bytes
		room        int
		text, marks string // marks below the text
	}{
		{"plain", "a = bcd", 4, 7, 40, "a = bcd", "    ^^^"},
		{"a tab before it", "\ta = b", 5, 6, 40, "    a = b", "        ^"},
		{"a tab in it", "a\tb", 0, 3, 40, "a   b", "^^^^^"},
		{"wide characters", "日本 = x", 9, 10, 40, "日本 = x", "       ^"},
		{"a mark on wide characters", "日本", 0, 3, 40, "日本", "^^"},
		{"combining characters", "e\u0301e\u0301x", 6, 7, 40, "e\u0301e\u0301x", "  ^"},
		{"an empty mark", "a =", 3, 3, 40, "a =", "   ^"},
		{"what terminals act on", "\x1b[31mx\u202ey", 5, 6, 40, "\ufffd[31mx\ufffdy", "     ^"},
		{"not UTF-8", "\xff\xfex", 2, 3, 40, "\ufffd\ufffdx", "  ^"},
		{"the end is cut", strings.Repeat("x", 50), 0, 2, 20, strings.Repeat("x", 19) + "…", "^^"},
		{"the start is cut", strings.Repeat("x", 50), 48, 50, 20, "…" + strings.Repeat("x", 19), strings.Repeat(" ", 18) + "^^"},
		{"both are cut", strings.Repeat("x", 50), 25, 27, 20, "…" + strings.Repeat("x", 18) + "…", strings.Repeat(" ", 9) + "^^"},
		{"the mark is cut", strings.Repeat("x", 50), 0, 50, 20, strings.Repeat("x", 19) + "…", strings.Repeat("^", 20)},
		{"half a wide character at the end", strings.Repeat("日", 20), 0, 3, 20, strings.Repeat("日", 9) + " …", "^^"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			columns, from, to := (span{0, len(c.line)}).columns([]byte(c.line), span{c.from, c.to})
			to = max(to, from+1)
			text, shift := window(columns, from, to, c.room)
			marks := strings.Repeat(" ", from-shift) + strings.Repeat("^", min(to-shift, c.room)-(from-shift))
			if text != c.text || marks != c.marks {
				t.Errorf("got\n%s\n%s\nwant\n%s\n%s", text, marks, c.text, c.marks)
			}
		})
	}
}

func TestWrapped(t *testing.T) {
	t.Parallel()
	got := wrapped("one two three\n  as  it  is\n\na-word-that-is-longer-than-the-room it", 9)
	want := []string{"one two", "three", "  as  it  is", "", "a-word-that-is-longer-than-the-room", "it"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
