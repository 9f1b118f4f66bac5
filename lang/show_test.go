package lang

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/lang/mark"
	"github.com/fray-ml/fray/lang/show"
	"github.com/fray-ml/fray/lang/syntax"
)

func TestShow(t *testing.T) {
	t.Parallel()
	secret := cty.StringVal("hunter2").Mark(mark.Sensitive{})
	object := cty.ObjectVal(map[string]cty.Value{"plain": cty.StringVal("x"), "secret": secret})
	tests := map[string]struct {
		val  cty.Value
		want string
	}{
		"sensitive":           {secret, "(sensitive value)"},
		"ephemeral":           {cty.StringVal("x").Mark(mark.Ephemeral{}), "(ephemeral value)"},
		"both":                {secret.Mark(mark.Ephemeral{}), "(sensitive value)"},
		"sensitive part":      {object, "{\n  \"plain\" = \"x\"\n  \"secret\" = (sensitive value)\n}"},
		"sensitive in a set":  {cty.SetVal([]cty.Value{secret}), "(sensitive value)"},
		"sensitive unknown":   {cty.UnknownVal(cty.String).Mark(mark.Sensitive{}), "(sensitive value)"},
		"unknown":             {cty.UnknownVal(cty.List(cty.String)), "(known after apply)"},
		"unknown part":        {cty.TupleVal([]cty.Value{cty.DynamicVal}), "[\n  (known after apply),\n]"},
		"null":                {cty.NullVal(cty.DynamicPseudoType), "null"},
		"null number":         {cty.NullVal(cty.Number), "tonumber(null)"},
		"null list":           {cty.NullVal(cty.List(cty.String)), "tolist(null) /* of string */"},
		"null object":         {cty.NullVal(cty.EmptyObject), "null /* object */"},
		"escapes":             {cty.StringVal("a\"b\\c\x1b[31m\u009b${x}%{y}"), `"a\"b\\c\u001b[31m\u009b$${x}%%{y}"`},
		"several lines":       {cty.StringVal("a\n\n b\n"), "<<-EOT\na\n\n b\nEOT"},
		"lines without end":   {cty.StringVal("a\nb"), `"a\nb"`},
		"lines with its mark": {cty.StringVal("EOT\nb\n"), "<<-EOT_\nEOT\nb\nEOT_"},
		"empty":               {cty.TupleVal([]cty.Value{cty.EmptyObjectVal, cty.EmptyTupleVal, cty.ListValEmpty(cty.String)}), "[\n  {},\n  [],\n  tolist([]),\n]"},
		"huge number":         {cty.MustParseNumberVal("1e99999"), "1e+99999"},
		"billions of digits":  {cty.MustParseNumberVal("7e99999999"), "7e+99999999"},
		"tiny number":         {cty.MustParseNumberVal("-2.5e-99999"), "-2.5e-99999"},
		"number":              {cty.NumberVal(big.NewFloat(1e21)), "1000000000000000000000"},
	}
	for name, tt := range tests {
		if got := show.Value(tt.val); got != tt.want {
			t.Errorf("%s: Show = %s\nwant %s", name, got, tt.want)
		}
	}
}

func TestShowTypeOf(t *testing.T) {
	t.Parallel()
	object := cty.ObjectVal(map[string]cty.Value{"hunter2": cty.True})
	tests := map[string]struct {
		val  cty.Value
		want string
	}{
		"string":           {cty.StringVal("x"), "string"},
		"map":              {cty.MapValEmpty(cty.List(cty.Number)), "map(list(number))"},
		"object":           {object, "object({\n  hunter2 = bool\n})"},
		"sensitive object": {object.Mark(mark.Sensitive{}), "object"},
		"sensitive string": {cty.StringVal("x").Mark(mark.Sensitive{}), "string"},
		"tuple":            {cty.TupleVal([]cty.Value{cty.True}), "tuple([\n  bool,\n])"},
		"odd name":         {cty.ObjectVal(map[string]cty.Value{"a b": cty.True}), "object({\n  \"a b\" = bool\n})"},
		"anything":         {cty.DynamicVal, "any"},
	}
	for name, tt := range tests {
		if got := show.Type(tt.val); got != tt.want {
			t.Errorf("%s: ShowTypeOf = %s\nwant %s", name, got, tt.want)
		}
	}
}

// TestShowIsRead: what Show writes of a known value is an expression for it.
func TestShowIsRead(t *testing.T) {
	t.Parallel()
	scope := (&Source{load.Empty(t.TempDir())}).Bare()
	values := rapid.OneOf(shownValue(3), rapid.SampledFrom(severalLines()))
	rapid.Check(t, func(t *rapid.T) {
		want := values.Draw(t, "value")
		text := show.Value(want)
		expr, diags := scope.Parse(text+"\n", "x") // as it is printed
		if diags.HasErrors() {
			t.Fatalf("%s\nis not read: %v", text, diags)
		}
		got, diags := scope.Eval(expr)
		if diags.HasErrors() {
			t.Fatalf("%s\ndoes not evaluate: %v", text, diags)
		}
		if !got.RawEquals(want) {
			t.Fatalf("%s\nis read as %#v, want %#v", text, got, want)
		}
	})
}

// severalLines are texts of several lines in all places.
func severalLines() []cty.Value {
	var found []cty.Value
	for _, text := range []string{"a\nb\n", "a\n  b\n\n", "  a\nb\n", " a\n b\n", "\n\n", "a\tb\n\tc\n", "${x}\n%{y}\n", "EOT\nEOT_\n", "a\r\nb\n"} {
		val := cty.StringVal(text)
		object := cty.ObjectVal(map[string]cty.Value{"a": val, "b": cty.TupleVal([]cty.Value{val, val})})
		found = append(found, val, object, cty.TupleVal([]cty.Value{object, val, object}), cty.MapVal(map[string]cty.Value{"a": val, "b": val}), cty.SetVal([]cty.Value{val}))
	}
	return found
}

// shownValue is a known value, nested up to some depth, of types that the language
// has an expression for.
func shownValue(depth int) *rapid.Generator[cty.Value] {
	texts := rapid.OneOf(
		rapid.StringN(0, 8, -1),
		rapid.StringOfN(rapid.RuneFrom([]rune("ab \n\t\"\\$%{}~\x1b\u2028é")), 0, 12, -1),
	)
	return rapid.Custom(func(t *rapid.T) cty.Value {
		switch kind := rapid.IntRange(0, 7).Draw(t, "kind"); {
		case kind == 0:
			return cty.BoolVal(rapid.Bool().Draw(t, "bool"))
		case kind == 1:
			return cty.NumberIntVal(rapid.Int64().Draw(t, "number"))
		case kind == 2 || depth == 0:
			return cty.StringVal(texts.Draw(t, "text"))
		case kind == 3:
			return cty.TupleVal(rapid.SliceOfN(shownValue(depth-1), 0, 3).Draw(t, "items"))
		case kind == 4:
			words := rapid.SliceOfN(rapid.Map(texts, cty.StringVal), 1, 3).Draw(t, "words")
			return rapid.SampledFrom([]func([]cty.Value) cty.Value{cty.ListVal, cty.SetVal}).Draw(t, "of")(words)
		case kind == 5:
			words := map[string]cty.Value{}
			for _, key := range rapid.SliceOfN(texts, 1, 3).Draw(t, "keys") {
				words[cty.NormalizeString(key)] = cty.StringVal(texts.Draw(t, "text"))
			}
			return cty.MapVal(words)
		}
		attrs := map[string]cty.Value{}
		for _, key := range rapid.SliceOfN(texts, 0, 3).Draw(t, "keys") {
			attrs[cty.NormalizeString(key)] = shownValue(depth-1).Draw(t, "attribute")
		}
		return cty.ObjectVal(attrs)
	})
}

func TestScopeBounds(t *testing.T) {
	t.Parallel()
	scope := (&Source{load.Empty(t.TempDir())}).Bare()
	deep := strings.Repeat("[", syntax.MaxNesting+1) + strings.Repeat("]", syntax.MaxNesting+1)
	if _, diags := scope.Parse(deep, "x"); !diags.HasErrors() || diags[0].Summary != "Nested too deeply" {
		t.Errorf("parsed %d brackets: %v", syntax.MaxNesting+1, diags)
	}
	for _, number := range []string{"7e373732337", "1E-99999", "1e99999999999999999999"} {
		if _, diags := scope.Parse(`"${`+number+`}"`, "x"); !diags.HasErrors() || diags[0].Summary != "Number too large" {
			t.Errorf("parsed %s: %v", number, diags)
		}
	}
	if _, diags := scope.Parse("[1e300, 2E-9, 1e+10, 0xe5]", "x"); diags.HasErrors() && diags[0].Summary == "Number too large" {
		t.Errorf("usual numbers: %v", diags)
	}
	if _, diags := scope.Parse(fmt.Sprintf("[%s]", strings.Repeat("1,", 10_000)), "x"); diags.HasErrors() {
		t.Errorf("a long list: %v", diags)
	}
}
