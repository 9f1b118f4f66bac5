package schema

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// scope is what expressions of one instance may refer to besides the rest.
type scope map[string]cty.Value

// get decodes an attribute, or returns def where it is absent, null or wrong;
// what is wrong with it is reported.
func get[T any](e *evaluator, s scope, x *expression, as converter[T], def T) T {
	v, _ := lookup(e, s, x, as, def)
	return v
}

// lookup is get, and reports whether the attribute has a value.
func lookup[T any](e *evaluator, s scope, x *expression, as converter[T], def T) (T, bool) {
	if x == nil {
		return def, false
	}
	out := e.eval(x, s)
	if !out.ok || !e.plain(x, out, fmt.Sprintf("%q", x.name)) || out.val.IsNull() {
		return def, false
	}
	v, err := as(out.val)
	if err != nil {
		e.wrongValue(x, out, err)
		return def, false
	}
	return v, true
}

// texts decodes a list of Texts: words that may be sensitive or not yet known.
func (e *evaluator) texts(s scope, x *expression) []Text {
	if x == nil {
		return nil
	}
	out := e.eval(x, s)
	if !out.ok || !e.keepable(x, out) {
		return nil
	}
	list, marks := out.val.Unmark()
	ty := list.Type()
	switch {
	case list.IsNull():
		return nil
	case ty == cty.String:
		e.wrongValue(x, out, fmt.Errorf("want a list of words such as [\"python\", \"train.py\"]; for a line of shell, [\"sh\", \"-c\", \"…\"]"))
		return nil
	case !list.IsKnown():
		e.notKnown(x, out.ctx,
			"The number of words must be known at plan time, but this whole list is known only after apply. Make one word of it, with join(\",\", …).")
		return nil
	case !ty.IsTupleType() && !ty.IsListType():
		e.wrongValue(x, out, fmt.Errorf("want a list of words such as [\"python\", \"train.py\"], this is %s", friendly(list)))
		return nil
	}
	words := make([]Text, 0, list.LengthInt())
	for it := list.ElementIterator(); it.Next(); {
		_, item := it.Element()
		word, err := toText(item, marks)
		if err != nil {
			rng, expr := x.expr.Range(), x.expr
			if tuple, ok := x.expr.(*hclsyntax.TupleConsExpr); ok {
				expr = tuple.Exprs[len(words)]
				rng = expr.Range()
			}
			e.add(valueError(rng, expr, out.ctx, "Invalid value for "+x.name, fmt.Sprintf("Word %d: %s.", len(words), err)))
			return nil
		}
		words = append(words, word)
	}
	return words
}

// textMap decodes a map of Texts.
func (e *evaluator) textMap(s scope, x *expression) map[string]Text {
	if x == nil {
		return nil
	}
	out := e.eval(x, s)
	if !out.ok || !e.keepable(x, out) {
		return nil
	}
	val, marks := out.val.Unmark()
	ty := val.Type()
	switch {
	case val.IsNull():
		return nil
	case !val.IsKnown():
		e.notKnown(x, out.ctx,
			"The names must be known at plan time, but this whole map is known only after apply. Write { NAME = … } with the values that are.")
		return nil
	case !ty.IsMapType() && !ty.IsObjectType():
		e.wrongValue(x, out, fmt.Errorf("want a map such as { NAME = \"value\" }, this is %s", friendly(val)))
		return nil
	}
	texts := make(map[string]Text, val.LengthInt())
	for it := val.ElementIterator(); it.Next(); {
		k, item := it.Element()
		name := k.AsString()
		text, err := toText(item, marks)
		if err == nil && (name == "" || strings.ContainsAny(name, "=\x00")) {
			err = fmt.Errorf("the name is empty or has a = in it")
		}
		if err != nil {
			expr := itemExpr(x.expr, name)
			e.add(valueError(expr.Range(), expr, out.ctx, "Invalid value for "+x.name, fmt.Sprintf("%q: %s.", name, err)))
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
func toText(v cty.Value, marks cty.ValueMarks) (Text, error) {
	secret := len(marks) > 0 || isSensitive(v)
	v, own := v.UnmarkDeep()
	if !v.IsKnown() {
		if ty := v.Type(); ty != cty.DynamicPseudoType && !ty.IsPrimitiveType() {
			return Text{}, fmt.Errorf("want a string, this will be %s", article(ty.FriendlyName()))
		}
		return UnknownText(), nil
	}
	if v.IsNull() {
		return Text{}, fmt.Errorf("null is no string; leave it out, or write \"\"")
	}
	str, err := convert.Convert(v, cty.String)
	if err != nil {
		return Text{}, fmt.Errorf("want a string, this is %s; jsonencode() makes one of anything", friendly(v))
	}
	if strings.ContainsRune(str.AsString(), 0) {
		return Text{}, fmt.Errorf("no process can be given a string with a zero byte")
	}
	if secret {
		return secretOf(str.AsString(), sourcesOf(marks, own)), nil
	}
	return Plain(str.AsString()), nil
}

// isPlainString reports whether a value is a string to be read as it is.
func isPlainString(v cty.Value) bool {
	return v.Type() == cty.String && v.IsKnown() && !v.IsMarked() && !v.IsNull()
}

// referenceTo decodes a reference to a thing of a kind and returns its scoped
// name.
func (e *evaluator) referenceTo(s scope, x *expression, kind Kind) (string, bool) {
	if x == nil {
		return "", false
	}
	out := e.eval(x, s)
	if !out.ok || out.val.IsNull() {
		return "", false
	}
	val, _ := out.val.Unmark()
	isThing := val.Type().IsObjectType() && val.Type().HasAttribute("addr") && val.IsKnown() && isPlainString(val.GetAttr("addr"))
	if !isThing && !e.plain(x, out, fmt.Sprintf("%q", x.name)) {
		return "", false
	}
	if isThing {
		text := val.GetAttr("addr").AsString()
		addr, err := ParseAddress(text)
		if err == nil && addr.Kind == kind {
			if _, decl := e.declared(addr); decl != nil {
				return addr.Scoped(), true
			}
		}
		e.wrongValue(x, out, fmt.Errorf("want a reference to %s, this is %s", article(string(kind)), text))
		return "", false
	}
	if val.Type() == cty.String {
		name := val.AsString()
		if e.decls.things[Address{Kind: kind, Name: name}] != nil {
			e.wrongValue(x, out, fmt.Errorf("write the reference %s.%s, without quotes", kind, name))
			return "", false
		}
		e.wrongValue(x, out, fmt.Errorf("write a reference such as %s.NAME, not a string. %s", kind, e.decls.dangling(Address{Kind: kind, Name: name})))
		return "", false
	}
	e.wrongValue(x, out, fmt.Errorf("want a reference such as %s.NAME, this is %s", kind, friendly(val)))
	return "", false
}
