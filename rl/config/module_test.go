package config

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/lang/format"
)

var update = flag.Bool("update", false, "write library/nexrl/sections.hcl and the table of docs/guides/nexrl.md again")

const sections = "../../library/nexrl/sections.hcl"

// TestN101_TheModuleHasEveryKey holds the variables of the module to the keys.
func TestN101_TheModuleHasEveryKey(t *testing.T) {
	want, diags := format.Source([]byte(moduleText()), "sections.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if *update {
		if err := os.WriteFile(filepath.FromSlash(sections), want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.FromSlash(sections))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not as the keys say; run go test ./rl/config -update (-want +got):\n%s", sections, diff)
	}
}

// moduleText is the file of the module with a variable for each section of the keys.
func moduleText() string {
	root := tree()
	var out strings.Builder
	out.WriteString("# Written by go test ./rl/config -update, from the keys of the configuration. Do not edit.\n")
	for _, name := range slices.Sorted(maps.Keys(root.children)) {
		if name != "roles" {
			variableText(&out, name, root.children[name])
		}
	}
	return out.String()
}

func variableText(out *strings.Builder, name string, n *node) {
	fmt.Fprintf(out, "\nvariable %q {\n", name)
	if n.key != nil {
		fmt.Fprintf(out, "type = %s\ndefault = null\ndescription = %q\n", hclType(*n.key), n.key.Meaning)
	} else {
		fmt.Fprintf(out, "type = %s\ndefault = {}\nnullable = false\ndescription = %q\n", objectType(n), "the section "+name+" of the configuration")
	}
	for _, key := range Keys() {
		if key.Path == name || strings.HasPrefix(key.Path, name+".") {
			validationText(out, key)
		}
	}
	out.WriteString("}\n")
}

func objectType(n *node) string {
	var out strings.Builder
	out.WriteString("object({\n")
	open := false
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		child := n.children[name]
		if child.key == nil {
			fmt.Fprintf(&out, "%s = optional(%s, {})\n", name, objectType(child))
			continue
		}
		open = open || child.key.Kind == Class
		fmt.Fprintf(&out, "%s = optional(%s)\n", name, hclType(*child.key))
	}
	if open {
		out.WriteString("args = optional(any, {})\n")
	}
	out.WriteString("})")
	return out.String()
}

func hclType(key Key) string {
	switch key.Kind {
	case Whole, Number, Seconds:
		return "number"
	case Flag:
		return "bool"
	case Texts:
		return "list(string)"
	case Words, Any:
		return "any"
	case Text, Word, Class:
	}
	return "string"
}

// validationText is the block that rejects values which the check of a document rejects.
func validationText(out *strings.Builder, key Key) {
	v, condition := "var."+key.Path, ""
	words := make([]string, len(key.Words))
	for i, word := range key.Words {
		words[i] = fmt.Sprintf("%q", word)
	}
	set := "[" + strings.Join(words, ", ") + "]"
	switch key.Kind {
	case Word:
		condition = fmt.Sprintf("contains(%s, %s)", set, v)
	case Words:
		condition = fmt.Sprintf("length(setsubtract(flatten([%s]), %s)) == 0", v, set)
	case Class:
		condition = fmt.Sprintf("contains(%s, %s) || can(regex(\"^[^:/ ]+:[^:/ ]+$\", %s))", set, v, v)
	case Whole, Number, Seconds:
		condition = numberCondition(key, v)
	case Text, Flag, Texts, Any:
	}
	if condition == "" {
		return
	}
	fmt.Fprintf(out, "\nvalidation {\ncondition = %s == null ? true : %s\nerror_message = %q\n}\n", v, condition, fmt.Sprintf("%s: want %s.", key.Path, key.wanted()))
}

func numberCondition(key Key, v string) string {
	var parts []string
	switch {
	case key.Above:
		parts = append(parts, fmt.Sprintf("%s > %v", v, key.Low))
	case key.Kind == Whole || key.Low > 0:
		parts = append(parts, fmt.Sprintf("%s >= %v", v, key.Low))
	}
	if key.High > 0 {
		parts = append(parts, fmt.Sprintf("%s <= %v", v, key.High))
	}
	if key.Kind == Whole {
		parts = append(parts, fmt.Sprintf("floor(%s) == %s", v, v))
	}
	return strings.Join(parts, " && ")
}
