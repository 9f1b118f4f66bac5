package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

func schemaJSON(t *testing.T) []byte {
	needsFray(t)
	t.Helper()
	out, err := exec.CommandContext(t.Context(), fray, "schema", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSchemaGolden shows in a diff what a change of the language is for others.
func TestSchemaGolden(t *testing.T) {
	golden := filepath.Join("testdata", "schema.json")
	var document map[string]any
	if err := json.Unmarshal(schemaJSON(t), &document); err != nil {
		t.Fatal(err)
	}
	document["fray_version"] = "" // is another one in every build
	got, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got), rewrite with -update:\n%s", golden, diff)
	}
}

func TestSchemaJSONDoc(t *testing.T) {
	var document struct {
		FormatVersion string           `json:"format_version"`
		FrayVersion   string           `json:"fray_version"`
		Blocks        []map[string]any `json:"blocks"`
		References    []map[string]any `json:"references"`
		Functions     []map[string]any `json:"functions"`
	}
	if err := json.Unmarshal(schemaJSON(t), &document); err != nil {
		t.Fatal(err)
	}
	keep := func(list []map[string]any, field string, values ...string) []map[string]any {
		return slices.DeleteFunc(list, func(item map[string]any) bool { return !slices.Contains(values, item[field].(string)) })
	}
	document.FrayVersion = "0.1.0"
	document.Blocks = slices.DeleteFunc(keep(document.Blocks, "type", "namespace", "provider", "controller"), func(b map[string]any) bool {
		return b["type"] == "provider" && !strings.Contains(fmt.Sprint(b["labels"]), "gcp")
	})
	for _, b := range document.Blocks {
		b["blocks"] = []any{} // what is in them is as they are themselves
	}
	document.References = keep(document.References, "root", "var", "job")
	document.Functions = keep(document.Functions, "name", "format", "jsonencode")
	example, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	readFormatDoc(t, "schema-json.md").check(t, append(example, '\n'))
}

// What follows is a checker that knows nothing of the language but the JSON.

type checkedBlock struct {
	Type       string
	Labels     []struct{ Value string }
	Repeats    bool
	Open       bool
	Dynamic    bool
	Attributes []struct {
		Name     string
		Required bool
	}
	Blocks []checkedBlock
}

// problems are what does not fit in a body, by the description of its block.
func (d *checkedBlock) problems(body *hclsyntax.Body) []string {
	var found []string
	for name, attr := range body.Attributes {
		known := d.Open
		for _, a := range d.Attributes {
			known = known || a.Name == name
		}
		if !known {
			found = append(found, fmt.Sprintf("%s: unknown attribute %s", attr.SrcRange, name))
		}
	}
	for _, a := range d.Attributes {
		if a.Required && body.Attributes[a.Name] == nil {
			found = append(found, fmt.Sprintf("%s: no %s", body.SrcRange, a.Name))
		}
	}
	seen := map[*checkedBlock]bool{}
	for _, block := range body.Blocks {
		if block.Type == "dynamic" {
			found = append(found, d.dynamicProblems(block)...)
			continue
		}
		child := d.child(block)
		if child == nil {
			found = append(found, fmt.Sprintf("%s: unknown block %s %q", block.DefRange(), block.Type, block.Labels))
			continue
		}
		if seen[child] && !child.Repeats {
			found = append(found, fmt.Sprintf("%s: a second %s", block.DefRange(), block.Type))
		}
		seen[child] = true
		found = append(found, child.problems(block.Body)...)
	}
	return found
}

// dynamicProblems looks at a dynamic block by what it makes.
func (d *checkedBlock) dynamicProblems(block *hclsyntax.Block) []string {
	made := d.child(&hclsyntax.Block{Type: block.Labels[0]})
	if made == nil || !made.Dynamic {
		return []string{fmt.Sprintf("%s: no dynamic %q", block.DefRange(), block.Labels)}
	}
	var found []string
	for _, content := range block.Body.Blocks {
		found = append(found, made.problems(content.Body)...)
	}
	return found
}

func (d *checkedBlock) child(block *hclsyntax.Block) *checkedBlock {
	for i := range d.Blocks {
		b := &d.Blocks[i]
		if b.Type != block.Type || len(b.Labels) != len(block.Labels) {
			continue
		}
		fits := true
		for n, label := range b.Labels {
			fits = fits && (label.Value == "" || label.Value == block.Labels[n])
		}
		if fits {
			return b
		}
	}
	return nil
}

// TestSchemaIsEnough checks all examples by the JSON alone, and finds mistakes.
func TestSchemaIsEnough(t *testing.T) {
	root := checkedBlock{}
	if err := json.Unmarshal(schemaJSON(t), &root); err != nil {
		t.Fatal(err)
	}
	check := func(name string, src []byte) []string {
		file, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		return root.problems(file.Body.(*hclsyntax.Body))
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*.hcl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("examples %v, error %v", files, err)
	}
	for _, path := range files {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if found := check(path, src); len(found) > 0 {
			t.Errorf("the description does not know %s", strings.Join(found, "\n"))
		}
	}
	for _, c := range []struct{ src, want string }{
		{"jobb \"a\" {\n}\n", "unknown block jobb"},
		{"job {\n}\n", "unknown block job"},
		{"provider \"aws\" {\n}\n", "unknown block provider"},
		{"job \"a\" {\n}\n", "no command"},
		{"job \"a\" {\n  command = []\n  comand = []\n}\n", "unknown attribute comand"},
		{"job \"a\" {\n  command = []\n  resources {\n  }\n  resources {\n  }\n}\n", "a second resources"},
		{"provider \"local\" {\n}\nprovider \"gcp\" {\n  project = \"p\"\n}\n", ""},
		{"provider \"local\" {\n}\nprovider \"local\" {\n}\n", "a second provider"},
		{"job \"a\" {\n  command = []\n  dynamic \"health_check\" {\n    for_each = []\n    content {\n      porrt = 1\n    }\n  }\n}\n", "unknown attribute porrt"},
		{"dynamic \"job\" {\n}\n", "no dynamic"},
		{"locals {\n  anything = 1\n}\n", ""},
	} {
		found := strings.Join(check("x.hcl", []byte(c.src)), "\n")
		if c.want == "" && found != "" || !strings.Contains(found, c.want) {
			t.Errorf("of %q: found %q, want %q", c.src, found, c.want)
		}
	}
}
