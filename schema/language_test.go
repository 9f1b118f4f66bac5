package schema

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

const documentPath = "../docs/language.md"

// TestDocumentTables: the tables of attributes in the document are those of the
// language; -update writes them.
func TestDocumentTables(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	marker := regexp.MustCompile(`(?s)<!-- attributes: ([a-z_.]+) -->\n.*?<!-- end -->`)
	got := marker.ReplaceAllStringFunc(string(data), func(s string) string {
		path := marker.FindStringSubmatch(s)[1]
		typ := typeAt(t, path)
		shown[path] = true
		return fmt.Sprintf("<!-- attributes: %s -->\n%s<!-- end -->", path, attributeTable(typ))
	})
	for path := range everyType(language(), "") {
		// what a table of another block shows as well
		path = strings.NewReplacer("job_group.job", "job", "reservation.min", "reservation.max", "check.data", "data",
			"reservation.lifecycle.p", "job.lifecycle.p").Replace(path)
		if rest, ok := strings.CutPrefix(path, "actor_service."); ok && typeIn(jobType(), rest) != nil {
			path = "job." + rest
		}
		if !shown[path] && path != "locals" {
			t.Errorf("%s has no table of %s", documentPath, path)
		}
	}
	if *update {
		if err := os.WriteFile(documentPath, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(data), got); diff != "" {
		t.Errorf("%s is not what the language is; run with -update (-is +want):\n%s", documentPath, diff)
	}
}

// everyType maps the paths of all block types below t, as "job.resources".
func everyType(t *blockType, prefix string) map[string]*blockType {
	types := map[string]*blockType{}
	for _, b := range t.blocks {
		path := prefix + b.name
		if b.variant != "" {
			path += "." + b.variant
		}
		types[path] = b
		maps.Copy(types, everyType(b, path+"."))
	}
	return types
}

func typeIn(root *blockType, path string) *blockType { return everyType(root, "")[path] }

func typeAt(t *testing.T, path string) *blockType {
	t.Helper()
	typ := typeIn(language(), path)
	if typ == nil {
		t.Fatalf("%s: the language has no %s", documentPath, path)
	}
	return typ
}

func attributeTable(typ *blockType) string {
	var out strings.Builder
	fmt.Fprintf(&out, "| `%s` | type | default | |\n|---|---|---|---|\n", header(typ))
	for _, a := range typ.attrs {
		def := a.def
		if a.required {
			def = "**required**"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", a.name, a.typ, def, strings.ReplaceAll(a.doc, "|", `\|`))
	}
	for _, b := range typ.blocks {
		fmt.Fprintf(&out, "| `%s` | block | | %s |\n", header(b), b.doc)
	}
	return out.String()
}

// TestLanguageIsDescribed: every part of the table says what it is.
func TestLanguageIsDescribed(t *testing.T) {
	t.Parallel()
	for path, typ := range everyType(language(), "") {
		if typ.doc == "" {
			t.Errorf("%s has no doc", path)
		}
		for _, a := range typ.attrs {
			if a.doc == "" || a.typ == "" {
				t.Errorf("%s.%s has no doc or no type", path, a.name)
			}
			if a.required && a.def != "" {
				t.Errorf("%s.%s is required and has a default", path, a.name)
			}
		}
	}
}

// TestDocumentSnippets evaluates every ```hcl snippet of the document by itself;
// those marked as fragments are parsed.
func TestDocumentSnippets(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	snippets := regexp.MustCompile("(?s)```hcl([^\n]*)\n(.*?)```").FindAllStringSubmatch(string(data), -1)
	if len(snippets) < 10 {
		t.Fatalf("%s has %d snippets only", documentPath, len(snippets))
	}
	dir := t.TempDir() // of those that are files of modules
	for _, s := range snippets {
		kind, src := strings.TrimSpace(s[1]), s[2]
		kind, path, _ := strings.Cut(kind, " ")
		formatted, diags := Format([]byte(src), "snippet.hcl")
		if diags.HasErrors() {
			t.Errorf("%v\n%s", diags, src)
		}
		if diff := cmp.Diff(src, string(formatted)); diff != "" {
			t.Errorf("not formatted (-is +want):\n%s", diff)
		}
		switch kind {
		case "fragment":
			if _, diags := hclsyntax.ParseConfig([]byte(src), "snippet.hcl", hcl.InitialPos); diags.HasErrors() {
				t.Errorf("%v\n%s", diags, src)
			}
		case "file":
			writeFile(t, filepath.Join(dir, path), []byte(src))
		case "":
			writeFile(t, filepath.Join(dir, "main.hcl"), []byte(src))
			source, diags := Parse([]string{dir})
			if _, more := source.Evaluate(Options{Version: "0.1.0"}); append(diags, more...).HasErrors() {
				t.Errorf("%v\n%s", append(diags, more...), src)
			}
		default:
			t.Errorf("a snippet is marked %q", kind)
		}
	}
}

// TestExamples: the configurations that ship with the project evaluate.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"quickstart", "training", "rl", "inference"} {
		s, diags := Parse([]string{"../examples/" + name + ".hcl"})
		if diags.HasErrors() {
			t.Errorf("%s: %v", name, diags)
			continue
		}
		if _, diags := s.Evaluate(Options{Local: true}); diags.HasErrors() {
			t.Errorf("%s: %v", name, diags)
		}
	}
}
