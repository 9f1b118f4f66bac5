package lang

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/lang/format"
	"github.com/fray-ml/fray/lang/syntax"
)

func TestParseDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.hcl": "locals {\n  b = 1\n}\n", "a.hcl": "locals {\n  a = 1\n}\n", ".hidden.hcl": "broken {", "#a.hcl": "broken {", "notes.txt": "broken {",
		"sub/c.hcl": "broken {", "fray.frayvars": "x = 1\n",
	} {
		writeFile(t, filepath.Join(dir, name), []byte(text))
	}
	s, diags := Parse([]string{dir})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if s.Dir() != dir {
		t.Errorf("Dir() = %s, want %s", s.Dir(), dir)
	}
	if got := len(s.Files()); got != 3 {
		t.Errorf("Files() = %v, want a.hcl, b.hcl and fray.frayvars", s.Files())
	}
	twice, diags := Parse([]string{dir, filepath.Join(dir, "a.hcl")})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if _, diags := twice.Evaluate(eval.Options{}); diags.HasErrors() {
		t.Errorf("a file named beside its directory counts twice: %v", diags)
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	digest := func(files map[string]string, order ...string) string {
		t.Helper()
		dir := t.TempDir()
		paths := []string{dir}
		for name, text := range files {
			writeFile(t, filepath.Join(dir, name), []byte(text))
		}
		if len(order) > 0 {
			paths = nil
			for _, name := range order {
				paths = append(paths, filepath.Join(dir, name))
			}
		}
		s, diags := Parse(paths)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		return s.Digest()
	}
	files := map[string]string{"a.hcl": "# a\n", "b.hcl": "# b\n"}
	base := digest(files)
	if got := digest(files); got != base {
		t.Errorf("the digest depends on where the directory is: %s and %s", base, got)
	}
	if got := digest(files, "b.hcl", "a.hcl"); got != base {
		t.Errorf("the digest depends on the order of the files: %s and %s", base, got)
	}
	for what, changed := range map[string]map[string]string{
		"content":       {"a.hcl": "# A\n", "b.hcl": "# b\n"},
		"name":          {"a.hcl": "# a\n", "c.hcl": "# b\n"},
		"swap":          {"a.hcl": "# b\n", "b.hcl": "# a\n"},
		"another file":  {"a.hcl": "# a\n", "b.hcl": "# b\n", "c.hcl": ""},
		"variable file": {"a.hcl": "# a\n", "b.hcl": "# b\n", "x.auto.frayvars": ""},
	} {
		if digest(changed) == base {
			t.Errorf("the digest does not change with %s", what)
		}
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	huge := filepath.Join(dir, "huge.hcl")
	file, err := os.Create(huge)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(files.MaxFileSize + 1); err != nil {
		t.Fatal(err)
	}
	file.Close()
	for _, path := range []string{huge, "/dev/zero", filepath.Join(dir, "absent")} {
		s, diags := Parse([]string{path})
		if s == nil || !diags.HasErrors() || diags[0].Subject != nil || diags[0].Detail == "" {
			t.Errorf("Parse(%s) = %v, %v; want a Source and an error without a range", path, s, diags)
		}
	}
}

func TestNesting(t *testing.T) {
	t.Parallel()
	const n = 20_000
	deep := map[string]string{
		"parentheses": "a = " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n),
		"brackets":    "a = " + strings.Repeat("[", n) + strings.Repeat("]", n),
		"braces":      "a = " + strings.Repeat("{a=", n) + "1" + strings.Repeat("}", n),
		"not":         "a = " + strings.Repeat("!", n) + "true",
		"minus":       "a = " + strings.Repeat("-", n) + "1",
		"sum":         "a = 1" + strings.Repeat("+1", n),
		"condition":   "a = " + strings.Repeat("true?1:", n) + "1",
		"index":       "a = b" + strings.Repeat("[c]", n),
		"call":        "a = " + strings.Repeat("f(", n) + strings.Repeat(")", n),
		"template":    "a = " + strings.Repeat(`"${`, n) + "1" + strings.Repeat(`}"`, n),
		"directive":   "a = \"" + strings.Repeat("%{if true}", n) + strings.Repeat("%{endif}", n) + "\"",
		"blocks":      strings.Repeat("b {\n", n) + strings.Repeat("}\n", n),
	}
	for name, text := range deep {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := "locals {\n" + text + "\n}\n"
			diags := syntax.CheckConfig([]byte(src), "x.hcl")
			if !diags.HasErrors() {
				t.Fatal("no error")
			}
			if _, diags := format.Source([]byte(src), "x.hcl"); !diags.HasErrors() {
				t.Error("Format: no error")
			}
		})
	}
	flat := map[string]string{
		"elements":   "a = [" + strings.Repeat("-1, !true, (1 + 2), f(1)[0], \"${x}\",\n", 2000) + "]",
		"attributes": strings.Repeat("x = -1 # comment\ny = !true\nz = 1 + 2 / 3\n", 2000),
		"directives": "a = \"" + strings.Repeat("%{if true}x%{else}y%{endif}${z}", 2000) + "\"",
		"heredocs":   strings.Repeat("a = <<EOT\n${-x}\nEOT\n", 2000),
		"object":     "a = {\n" + strings.Repeat("b = -1\n", 2000) + "}",
	}
	for name, text := range flat {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diags := syntax.CheckConfig([]byte(text), "x.hcl"); diags.HasErrors() {
				t.Errorf("flat source is refused: %v", diags)
			}
		})
	}
	if _, diags := parseText(t, "locals {; a = "+strings.Repeat("[", 450)+strings.Repeat("]", 450)+"; b = 1"+strings.Repeat("+1", 900)+"; }").Evaluate(eval.Options{}); diags.HasErrors() {
		t.Errorf("what is nested within the limit does not evaluate: %v", diags)
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	got, diags := format.Source([]byte("job \"a\" {\ncommand=[\"x\",\n\"y\"]\nstop_grace   = \"1s\"\n}\n"), "x.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	want := "job \"a\" {\n  command = [\"x\",\n  \"y\"]\n  stop_grace = \"1s\"\n}\n"
	if string(got) != want {
		t.Errorf("Format = %q, want %q", got, want)
	}
	broken := []byte("job \"a\" {\n  command = [\n}\n")
	got, diags = format.Source(broken, "broken.hcl")
	if !diags.HasErrors() || diags[0].Subject.Filename != "broken.hcl" || !bytes.Equal(got, broken) {
		t.Errorf("Format of what does not parse = %q, %v; want it unchanged with diagnostics", got, diags)
	}
}

// TestLongChainOfLocals: locals may refer to each other as long as they like.
func TestLongChainOfLocals(t *testing.T) {
	t.Parallel()
	var src strings.Builder
	const n = 5000
	src.WriteString("locals {\n  a0 = 1\n")
	for i := 1; i <= n; i++ {
		src.WriteString("  a" + strconv.Itoa(i) + " = local.a" + strconv.Itoa(i-1) + "\n")
	}
	src.WriteString("}\noutput \"o\" {\n  value = local.a" + strconv.Itoa(n) + "\n}\n")
	if got := outputOf(t, src.String(), "o", eval.Options{}); got != "1" {
		t.Errorf("the end of the chain = %s, want 1", got)
	}
}
