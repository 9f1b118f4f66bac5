package lang

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

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/format"
	"github.com/fray-ml/fray/lang/language"
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
	for path := range everyType(language.Root(), "") {
		// what a table of another block shows as well
		path = strings.NewReplacer("job_group.job", "job", "job_group.actor_service", "actor_service", "job_group.reservation", "reservation", "reservation.min", "reservation.max", "check.data", "data",
			"reservation.lifecycle.p", "job.lifecycle.p").Replace(path)
		path = strings.NewReplacer("reservation.min", "reservation.max", "reservation.lifecycle.p", "job.lifecycle.p").Replace(path)
		if rest, ok := strings.CutPrefix(path, "actor_service."); ok && typeIn(language.JobType(), rest) != nil {
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
func everyType(t *language.BlockType, prefix string) map[string]*language.BlockType {
	types := map[string]*language.BlockType{}
	for _, b := range t.Blocks {
		path := prefix + b.Name
		if b.Variant != "" {
			path += "." + b.Variant
		}
		types[path] = b
		maps.Copy(types, everyType(b, path+"."))
	}
	return types
}

func typeIn(root *language.BlockType, path string) *language.BlockType {
	return everyType(root, "")[path]
}

func typeAt(t *testing.T, path string) *language.BlockType {
	t.Helper()
	typ := typeIn(language.Root(), path)
	if typ == nil {
		t.Fatalf("%s: the language has no %s", documentPath, path)
	}
	return typ
}

func attributeTable(typ *language.BlockType) string {
	var out strings.Builder
	fmt.Fprintf(&out, "| `%s` | type | default | |\n|---|---|---|---|\n", language.Header(typ))
	for _, a := range typ.Attrs {
		def := a.Default
		if a.Required {
			def = "**required**"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", a.Name, a.Type, def, strings.ReplaceAll(a.Doc, "|", `\|`))
	}
	for _, b := range typ.Blocks {
		fmt.Fprintf(&out, "| `%s` | block | | %s |\n", language.Header(b), b.Doc)
	}
	return out.String()
}

// TestLanguageIsDescribed: every part of the table has its documentation.
func TestLanguageIsDescribed(t *testing.T) {
	t.Parallel()
	for path, typ := range everyType(language.Root(), "") {
		if typ.Doc == "" {
			t.Errorf("%s has no doc", path)
		}
		for _, a := range typ.Attrs {
			if a.Doc == "" || a.Type == "" {
				t.Errorf("%s.%s has no doc or no type", path, a.Name)
			}
			if a.Required && a.Default != "" {
				t.Errorf("%s.%s is required and has a default", path, a.Name)
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
		formatted, diags := format.Source([]byte(src), "snippet.hcl")
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
			if _, more := source.Evaluate(eval.Options{Version: "0.1.0"}); append(diags, more...).HasErrors() {
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
		if _, diags := s.Evaluate(eval.Options{Local: true}); diags.HasErrors() {
			t.Errorf("%s: %v", name, diags)
		}
	}
}
