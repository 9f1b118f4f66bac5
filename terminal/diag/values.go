package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Value describes a reference at the moment.
type Value struct {
	Traversal string `json:"traversal"`
	Statement string `json:"statement"`
}

// Values describes the references of a diagnostic's expression, by
// name. What is sensitive, or must not be kept, is described as that and nothing more.
func Values(d *hcl.Diagnostic) []Value {
	values := []Value{}
	if d.Expression == nil || d.EvalContext == nil {
		return values
	}
	for _, traversal := range d.Expression.Variables() {
		val, diags := traversal.TraverseAbs(d.EvalContext)
		if diags.HasErrors() {
			continue
		}
		values = append(values, Value{Traversal: traversalText(traversal), Statement: statementOf(val)})
	}
	slices.SortFunc(values, func(x, y Value) int { return cmp.Compare(x.Traversal, y.Traversal) })
	return slices.Compact(values)
}

func traversalText(traversal hcl.Traversal) string {
	var b strings.Builder
	for _, step := range traversal {
		switch step := step.(type) {
		case hcl.TraverseRoot:
			b.WriteString(step.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + step.Name)
		case hcl.TraverseIndex:
			fmt.Fprintf(&b, "[%s]", literalText(step.Key))
		}
	}
	return b.String()
}

// maxLiteral is how many characters of a string are shown.
const maxLiteral = 120

// literalText is a primitive value as it would be written.
func literalText(val cty.Value) string {
	switch {
	case val.ContainsMarked() || !val.IsKnown() || val.IsNull():
		return "…"
	case val.Type() == cty.Number:
		return val.AsBigFloat().Text('g', -1)
	case val.Type() == cty.Bool && val.True():
		return "true"
	case val.Type() == cty.Bool:
		return "false"
	case val.Type() != cty.String:
		return "…"
	}
	text := val.AsString()
	if runes := []rune(text); len(runes) > maxLiteral {
		text = string(runes[:maxLiteral]) + "…"
	}
	return fmt.Sprintf("%q", text)
}

// statementOf describes a value, as what follows its name.
func statementOf(val cty.Value) string {
	ty := val.Type()
	switch {
	case val.ContainsMarked():
		return "has a sensitive value"
	case !val.IsKnown() && ty == cty.DynamicPseudoType:
		return "is not known yet"
	case !val.IsKnown():
		return "is a " + ty.FriendlyName() + ", not known yet"
	case val.IsNull():
		return "is null"
	case ty.IsPrimitiveType():
		return "is " + literalText(val)
	case ty.IsObjectType():
		return fmt.Sprintf("is object with %s", counted(len(ty.AttributeTypes()), "attribute"))
	case ty.IsCollectionType() || ty.IsTupleType():
		return fmt.Sprintf("is %s with %s", ty.FriendlyName(), counted(val.LengthInt(), "element"))
	}
	return "is " + ty.FriendlyName()
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
