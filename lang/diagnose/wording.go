package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/schema"
)

// DidYouMean is a sentence that suggests the nearest candidate, or lists them
// all where none is near and they are few.
func DidYouMean(name string, candidates []string) string {
	if near := schema.Nearest(name, candidates); near != "" && name != "" {
		return fmt.Sprintf("Did you mean %q?", near)
	}
	switch {
	case len(candidates) == 0:
		return "None is declared."
	case len(candidates) == 1:
		return fmt.Sprintf("There is only %s.", candidates[0])
	case len(candidates) <= 12:
		sorted := slices.Sorted(slices.Values(candidates))
		return "There are " + strings.Join(slices.Compact(sorted), ", ") + "."
	}
	return ""
}

// Article puts "a" or "an" before a word.
func Article(word string) string {
	if word != "" && strings.ContainsRune("aeiou", rune(word[0])) && word != "uv" && word != "user" {
		return "an " + word
	}
	return "a " + word
}

// Place is a range in words, for a diagnostic that names a second one.
func Place(rng hcl.Range) string { return fmt.Sprintf("%s line %d", rng.Filename, rng.Start.Line) }

// Capitalized begins a text with a capital.
func Capitalized(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Friendly describes a value in words, without showing what is in it.
func Friendly(v cty.Value) string {
	switch {
	case v.IsNull():
		return "null"
	case v.Type() == cty.String:
		return "a string"
	case v.Type() == cty.Number:
		return "a number"
	case v.Type() == cty.Bool:
		return "a bool"
	case v.Type().IsTupleType():
		return "a list"
	}
	return Article(v.Type().FriendlyName())
}

// Sentence makes an error's text one.
func Sentence(s string) string {
	s = Capitalized(s)
	if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "?") {
		s += "."
	}
	return s
}
