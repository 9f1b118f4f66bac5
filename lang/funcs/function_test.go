package funcs

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/fray-ml/fray/lang/files"
)

const functionsPath = "../../docs/functions.md"

// TestFunctionsDescribed: nothing lacks a description.
func TestFunctionsDescribed(t *testing.T) {
	t.Parallel()
	var names []string
	fns := InDirectory("")
	for _, d := range Docs() {
		names = append(names, d.Name)
		if _, ok := fns[d.Name]; !ok {
			t.Errorf("%s cannot be called", d.Name)
		}
		if !regexp.MustCompile(`^[A-Z-].*[.]$|^format for .*[.]$`).MatchString(d.Description) || d.Returns == "" || !slices.Contains(Groups(), d.Group) {
			t.Errorf("%s returns %q, is of the group %q, and is described as %q", d.Name, d.Returns, d.Group, d.Description)
		}
		if !strings.Contains(d.Example, d.Name+"(") {
			t.Errorf("the example of %s is %s", d.Name, d.Example)
		}
		for i, p := range d.Parameters {
			if p.Name == "" || p.Type == "" || p.Description == "" {
				t.Errorf("parameter %d of %s is %+v", i, d.Name, p)
			}
		}
		if d.Variadic && len(d.Parameters) == 0 {
			t.Errorf("%s has no parameter to repeat", d.Name)
		}
		fn := fns[d.Name]
		if fn.Description() != d.Description {
			t.Errorf("the function %s is described as %q, want %q", d.Name, fn.Description(), d.Description)
		}
	}
	if len(names) != len(fns) {
		t.Errorf("%d functions are described, %d can be called", len(names), len(fns))
	}
	for _, f := range library(files.Folder{}, &clock{}) {
		params := len(f.fn.Params())
		if f.fn.VarParam() != nil {
			params++
		}
		if params != len(f.params) {
			t.Errorf("%s has %d parameters, %d are described", f.name, params, len(f.params))
		}
	}
}

func TestSignature(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"abs":    "abs(num: number): number",
		"lookup": "lookup(map: any, key: string, default: any...): any",
		"can":    "can(expression: expression): bool",
		"max":    "max(numbers: number...): number",
		"sum":    "sum(list: list(number)): number",
	}
	for _, d := range Docs() {
		if w, ok := want[d.Name]; ok && d.Signature() != w {
			t.Errorf("got %s, want %s", d.Signature(), w)
		}
		delete(want, d.Name)
	}
	if len(want) > 0 {
		t.Errorf("there are no functions %v", slices.Sorted(maps.Keys(want)))
	}
}

// TestFunctionsDocument: the document shows each function as it is, with an
// example and what that evaluates to; -update writes it.
func TestFunctionsDocument(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(functionsPath)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[Group]bool{}
	marker := regexp.MustCompile(`(?s)<!-- functions: ([a-z]+) -->\n.*?<!-- end -->`)
	planned := Moment{Planned: time.Date(2026, 1, 2, 23, 12, 1, 0, time.UTC)}
	ctx := &hcl.EvalContext{Functions: In(files.NewFolder(files.Disk{}, functionFiles(t)), planned)}
	got := marker.ReplaceAllStringFunc(string(data), func(s string) string {
		group := Group(marker.FindStringSubmatch(s)[1])
		shown[group] = true
		return fmt.Sprintf("<!-- functions: %s -->\n%s<!-- end -->", group, functionTable(t, ctx, group))
	})
	left := regexp.MustCompile(`(?s)<!-- left out -->\n.*?<!-- end -->`)
	if !left.MatchString(got) {
		t.Errorf("%s does not say what is left out", functionsPath)
	}
	got = left.ReplaceAllString(got, "<!-- left out -->\n"+leftOutTable()+"<!-- end -->")
	for _, group := range Groups() {
		if !shown[group] {
			t.Errorf("%s has no functions of %s", functionsPath, group)
		}
	}
	if *update {
		if err := os.WriteFile(functionsPath, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(data), got); diff != "" {
		t.Errorf("%s is not what the functions are; run with -update (-is +want):\n%s", functionsPath, diff)
	}
}

func functionTable(t *testing.T, ctx *hcl.EvalContext, group Group) string {
	t.Helper()
	var b strings.Builder
	var err error
	cell := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
	b.WriteString("| function | | example |\n|---|---|---|\n")
	for _, d := range Docs() {
		if d.Group != group {
			continue
		}
		val, diags := evaluateExpression(t, ctx, d.Example)
		if diags.HasErrors() {
			t.Errorf("%s: %v", d.Example, diags)
			continue
		}
		val, _ = val.UnmarkDeep()
		result := []byte("known after apply")
		if val.IsKnown() {
			if result, err = ctyjson.Marshal(val, val.Type()); err != nil {
				t.Errorf("%s: %v", d.Example, err)
			}
		}
		text := d.Description
		for _, p := range d.Parameters {
			text += fmt.Sprintf("<br>`%s`: %s", p.Name, p.Description)
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s`<br>= `%s` |\n", cell(d.Signature()), cell(text), cell(d.Example), cell(string(result)))
	}
	return b.String()
}

func leftOutTable() string {
	var b strings.Builder
	b.WriteString("| function | why |\n|---|---|\n")
	out := leftOutFunctions()
	for _, name := range slices.Sorted(maps.Keys(out)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, out[name])
	}
	return b.String()
}

func TestFunctionAdvice(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"type":            "Terraform's type is left out: it is of Terraform's console only",
		"provider::a::b":  "Providers bring no functions",
		"templatestrin":   `Did you mean "templatestring"?`,
		"nothinglikeitat": "",
	} {
		if got := Advice(name); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

var update = flag.Bool("update", false, "rewrite docs/functions.md")
