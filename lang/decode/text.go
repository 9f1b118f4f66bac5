package decode

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/mark"
	"github.com/fray-ml/fray/schema"
)

// texts decodes a list of Texts, which may be sensitive or not yet known.
func (e *Decoder) texts(s eval.RepetitionData, x *configs.Expression) []schema.Text {
	if x == nil {
		return nil
	}
	return textsOf(e, x, e.Eval(x, s))
}

// textsOf decodes the list of Texts that an attribute came to.
func textsOf(e *Decoder, x *configs.Expression, out configs.Result) []schema.Text {
	if !out.OK {
		return nil
	}
	if words, ok := plainTexts(out.Value); ok {
		return words
	}
	if !e.Keepable(x, out) {
		return nil
	}
	list, marks := out.Value.Unmark()
	ty := list.Type()
	switch {
	case list.IsNull():
		return nil
	case ty == cty.String:
		e.WrongValue(x, out, fmt.Errorf("want a list of strings such as [\"python\", \"train.py\"]; for a line of shell, [\"sh\", \"-c\", \"…\"]"))
		return nil
	case !list.IsKnown():
		e.NotKnown(x, out.Context,
			"The length of the list must be known at plan time, but the whole list is known only after apply. Make one string of it, with join(\",\", …).")
		return nil
	case !ty.IsTupleType() && !ty.IsListType():
		e.WrongValue(x, out, fmt.Errorf("want a list of strings such as [\"python\", \"train.py\"], this is %s", diagnose.Friendly(list)))
		return nil
	}
	words := make([]schema.Text, 0, list.LengthInt())
	for it := list.ElementIterator(); it.Next(); {
		_, item := it.Element()
		word, err := toText(item, marks)
		if err != nil {
			rng, expr := x.Expr.Range(), x.Expr
			if tuple, ok := x.Expr.(*hclsyntax.TupleConsExpr); ok {
				expr = tuple.Exprs[len(words)]
				rng = expr.Range()
			}
			e.Add(eval.ValueError(rng, expr, out.Context, "Invalid value for "+x.Name, fmt.Sprintf("Element %d: %s.", len(words), err)))
			return nil
		}
		words = append(words, word)
	}
	return words
}

// plainTexts are the words of a list of strings that are known and have no marks, as most are. It
// reports false for any other value.
func plainTexts(list cty.Value) ([]schema.Text, bool) {
	if ty := list.Type(); list.IsMarked() || list.IsNull() || !list.IsKnown() || !ty.IsTupleType() && !ty.IsListType() {
		return nil, false
	}
	words := make([]schema.Text, 0, list.LengthInt())
	for it := list.ElementIterator(); it.Next(); {
		_, item := it.Element()
		if item.Type() != cty.String || item.IsMarked() || item.IsNull() || !item.IsKnown() {
			return nil, false
		}
		text := item.AsString()
		if strings.ContainsRune(text, 0) {
			return nil, false
		}
		words = append(words, schema.Plain(text))
	}
	return words, true
}

// TextMap decodes a map of Texts.
func (e *Decoder) TextMap(s eval.RepetitionData, x *configs.Expression) map[string]schema.Text {
	if x == nil {
		return nil
	}
	out := e.Eval(x, s)
	if !out.OK || !e.Keepable(x, out) {
		return nil
	}
	val, marks := out.Value.Unmark()
	ty := val.Type()
	switch {
	case val.IsNull():
		return nil
	case !val.IsKnown():
		e.NotKnown(x, out.Context,
			"The names must be known at plan time, but this whole map is known only after apply. Write { NAME = … } with the values that are.")
		return nil
	case !ty.IsMapType() && !ty.IsObjectType():
		e.WrongValue(x, out, fmt.Errorf("want a map such as { NAME = \"value\" }, this is %s", diagnose.Friendly(val)))
		return nil
	}
	texts := make(map[string]schema.Text, val.LengthInt())
	for it := val.ElementIterator(); it.Next(); {
		k, item := it.Element()
		name := k.AsString()
		text, err := toText(item, marks)
		if err == nil && (name == "" || strings.ContainsAny(name, "=\x00")) {
			err = fmt.Errorf("the name is empty or has a = in it")
		}
		if err != nil {
			expr := itemExpr(x.Expr, name)
			e.Add(eval.ValueError(expr.Range(), expr, out.Context, "Invalid value for "+x.Name, fmt.Sprintf("%q: %s.", name, err)))
			continue
		}
		texts[name] = text
	}
	return texts
}

// itemExpr finds the expression of one item of an object, or the whole.
func itemExpr(expr hcl.Expression, name string) hcl.Expression {
	object, ok := expr.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return expr
	}
	for _, item := range object.Items {
		if key, diags := item.KeyExpr.Value(nil); !diags.HasErrors() && key.Type() == cty.String && key.IsKnown() && !key.IsNull() && key.AsString() == name {
			return item.ValueExpr
		}
	}
	return expr
}

// toText converts one value; marks are those of what it stands in.
func toText(v cty.Value, marks cty.ValueMarks) (schema.Text, error) {
	secret := len(marks) > 0 || mark.IsSensitive(v)
	v, own := v.UnmarkDeep()
	if !v.IsKnown() {
		if ty := v.Type(); ty != cty.DynamicPseudoType && !ty.IsPrimitiveType() {
			return schema.Text{}, fmt.Errorf("want a string, this will be %s", diagnose.Article(ty.FriendlyName()))
		}
		return schema.UnknownText(), nil
	}
	if v.IsNull() {
		return schema.Text{}, fmt.Errorf("null is no string; leave it out, or write \"\"")
	}
	str, err := convert.Convert(v, cty.String)
	if err != nil {
		return schema.Text{}, fmt.Errorf("want a string, this is %s; jsonencode() makes one of anything", diagnose.Friendly(v))
	}
	if strings.ContainsRune(str.AsString(), 0) {
		return schema.Text{}, fmt.Errorf("no process can be given a string with a zero byte")
	}
	if secret {
		return schema.SecretFrom(str.AsString(), mark.Sources(marks, own)), nil
	}
	return schema.Plain(str.AsString()), nil
}
