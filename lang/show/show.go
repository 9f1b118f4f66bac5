package show

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/mark"
)

// Value writes a value as the language would: strings quoted, several of
// anything on lines of their own, with what kind of list it is. What is
// sensitive or not known yet shows as that.
func Value(v cty.Value) string {
	var p valuePrinter
	p.value(v, 0)
	return p.String()
}

// Type writes the type of a value as a type constraint. The names in a
// sensitive object are as sensitive as it is.
func Type(v cty.Value) string {
	if v.IsMarked() && (v.Type().IsObjectType() || v.Type().IsTupleType()) {
		return v.Type().FriendlyName()
	}
	var p valuePrinter
	p.typ(v.Type(), 0)
	return p.String()
}

type valuePrinter struct {
	strings.Builder
	inList bool // what follows on the line would keep a heredoc from ending
}

func (p *valuePrinter) line(indent int) {
	p.WriteString("\n")
	p.WriteString(strings.Repeat("  ", indent))
}

func (p *valuePrinter) value(v cty.Value, indent int) {
	ty := v.Type()
	switch {
	case v.HasMark(mark.Sensitive{}):
		p.WriteString("(sensitive value)")
	case v.HasMark(mark.Ephemeral{}):
		p.WriteString("(ephemeral value)")
	case v.IsMarked():
		unmarked, _ := v.Unmark()
		p.value(unmarked, indent)
	case !v.IsKnown():
		p.WriteString("(known after apply)")
	case v.IsNull():
		p.null(ty)
	case ty == cty.String:
		p.text(v.AsString(), indent)
	case ty == cty.Number:
		p.number(v.AsBigFloat())
	case ty == cty.Bool:
		fmt.Fprint(p, v.True())
	case ty.IsTupleType():
		p.items(v, indent)
	case ty.IsListType():
		p.wrapped("tolist", v, indent, p.items)
	case ty.IsSetType():
		p.wrapped("toset", v, indent, p.items)
	case ty.IsObjectType():
		p.pairs(v, indent)
	case ty.IsMapType():
		p.wrapped("tomap", v, indent, p.pairs)
	default:
		p.WriteString("(" + ty.FriendlyName() + ")")
	}
}

// maxExponent is up to which power of two a number is written with all its
// digits: there may be billions.
const maxExponent = 4096

func (p *valuePrinter) number(n *big.Float) {
	binary := n.MantExp(nil)
	if n.IsInf() || binary <= maxExponent && binary >= -maxExponent {
		p.WriteString(n.Text('f', -1))
		return
	}
	exponent := int64(math.Floor(float64(binary) * math.Log10(2)))
	power := powerOfTen(max(exponent, -exponent), n.Prec())
	digits := new(big.Float).SetPrec(n.Prec())
	if exponent >= 0 {
		digits.Quo(n, power)
	} else {
		digits.Mul(n, power)
	}
	fmt.Fprintf(p, "%se%+d", digits.Text('g', 15), exponent)
}

func powerOfTen(exponent int64, precision uint) *big.Float {
	power := new(big.Float).SetPrec(precision).SetInt64(1)
	for square := new(big.Float).SetPrec(precision).SetInt64(10); exponent > 0; exponent /= 2 {
		if exponent%2 == 1 {
			power.Mul(power, square)
		}
		square.Mul(square, square)
	}
	return power
}

func (p *valuePrinter) null(ty cty.Type) {
	switch {
	case ty == cty.String, ty == cty.Number, ty == cty.Bool:
		p.WriteString("to" + ty.FriendlyName() + "(null)")
	case ty.IsListType(), ty.IsSetType(), ty.IsMapType():
		kind, _, _ := strings.Cut(ty.FriendlyName(), " ")
		fmt.Fprintf(p, "to%s(null) /* of %s */", kind, ty.ElementType().FriendlyName())
	case ty == cty.DynamicPseudoType:
		p.WriteString("null")
	default:
		fmt.Fprintf(p, "null /* %s */", ty.FriendlyName())
	}
}

func (p *valuePrinter) wrapped(function string, v cty.Value, indent int, write func(cty.Value, int)) {
	p.WriteString(function + "(")
	write(v, indent)
	p.WriteString(")")
}

func (p *valuePrinter) items(v cty.Value, indent int) {
	p.WriteString("[")
	empty := true
	for it := v.ElementIterator(); it.Next(); {
		_, item := it.Element()
		p.line(indent + 1)
		p.inList = true
		p.value(item, indent+1)
		p.WriteString(",")
		empty = false
	}
	if !empty {
		p.line(indent)
	}
	p.WriteString("]")
}

func (p *valuePrinter) pairs(v cty.Value, indent int) {
	p.WriteString("{")
	empty := true
	for it := v.ElementIterator(); it.Next(); {
		key, item := it.Element()
		p.line(indent + 1)
		p.WriteString(quoted(key.AsString()) + " = ")
		p.inList = false
		p.value(item, indent+1)
		empty = false
	}
	if !empty {
		p.line(indent)
	}
	p.WriteString("}")
}

// text writes a string: one of several lines as a heredoc, if a heredoc can express it.
func (p *valuePrinter) text(s string, indent int) {
	body, whole := strings.CutSuffix(s, "\n")
	if p.inList || !whole || !strings.Contains(body, "\n") || !readable(s) {
		p.WriteString(quoted(s))
		return
	}
	end := "EOT"
	for strings.Contains(s, end) {
		end += "_"
	}
	p.WriteString("<<-" + end)
	for line := range strings.SplitSeq(body, "\n") {
		if line == "" {
			p.WriteString("\n")
			continue
		}
		p.line(indent)
		p.WriteString(escapeTemplates(line))
	}
	p.line(indent)
	p.WriteString(end)
}

// readable reports whether a heredoc can hold a text: it has no escapes, and
// would take the space before all lines for indentation.
func readable(s string) bool {
	flush := false
	for line := range strings.SplitSeq(s, "\n") {
		flush = flush || line != "" && line[0] != ' ' && line[0] != '\t'
	}
	return flush && !strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && isControl(r) })
}

// isControl reports whether a terminal may take a character for a command.
func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 }

func escapeTemplates(s string) string {
	if !strings.Contains(s, "{") {
		return s
	}
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(s)
}

// quoted writes a string as the language reads it.
func quoted(s string) string {
	var b strings.Builder
	b.WriteString(`"`)
	for _, r := range escapeTemplates(s) {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case isControl(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteString(`"`)
	return b.String()
}

func (p *valuePrinter) typ(ty cty.Type, indent int) {
	switch {
	case ty == cty.DynamicPseudoType:
		p.WriteString("any")
	case ty.IsListType(), ty.IsSetType(), ty.IsMapType():
		kind, _, _ := strings.Cut(ty.FriendlyName(), " ")
		p.WriteString(kind + "(")
		p.typ(ty.ElementType(), indent)
		p.WriteString(")")
	case ty.IsTupleType():
		p.WriteString("tuple([")
		for _, item := range ty.TupleElementTypes() {
			p.line(indent + 1)
			p.typ(item, indent+1)
			p.WriteString(",")
		}
		if ty.Length() > 0 {
			p.line(indent)
		}
		p.WriteString("])")
	case ty.IsObjectType():
		p.WriteString("object({")
		for _, name := range slices.Sorted(maps.Keys(ty.AttributeTypes())) {
			shown := name
			if !hclsyntax.ValidIdentifier(name) {
				shown = quoted(name)
			}
			p.line(indent + 1)
			p.WriteString(shown + " = ")
			p.typ(ty.AttributeType(name), indent+1)
		}
		if len(ty.AttributeTypes()) > 0 {
			p.line(indent)
		}
		p.WriteString("})")
	default:
		p.WriteString(ty.FriendlyName())
	}
}
