package decode

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// referenceTo decodes a reference to a declaration of a kind and returns its
// scoped name.
func (e *Decoder) referenceTo(s eval.RepetitionData, x *configs.Expression, kind schema.Kind) (string, bool) {
	if x == nil {
		return "", false
	}
	out := e.Eval(x, s)
	if !out.OK || out.Value.IsNull() {
		return "", false
	}
	val, _ := out.Value.Unmark()
	isReference := val.Type().IsObjectType() && val.Type().HasAttribute("addr") && val.IsKnown() && as.IsPlainString(val.GetAttr("addr"))
	if !isReference && !e.Plain(x, out, fmt.Sprintf("%q", x.Name)) {
		return "", false
	}
	if isReference {
		text := val.GetAttr("addr").AsString()
		addr, err := schema.ParseAddress(text)
		if err == nil && addr.Kind == kind {
			if _, decl := e.Declared(addr); decl != nil {
				return addr.Scoped(), true
			}
		}
		e.WrongValue(x, out, fmt.Errorf("want a reference to %s, this is %s", diagnose.Article(string(kind)), text))
		return "", false
	}
	if val.Type() == cty.String {
		name := val.AsString()
		if e.Decls.Addressed[schema.Address{Kind: kind, Name: name}] != nil {
			e.WrongValue(x, out, fmt.Errorf("write the reference %s.%s, without quotes", kind, name))
			return "", false
		}
		e.WrongValue(x, out, fmt.Errorf("write a reference such as %s.NAME, not a string. %s", kind, e.Decls.Dangling(schema.Address{Kind: kind, Name: name})))
		return "", false
	}
	e.WrongValue(x, out, fmt.Errorf("want a reference such as %s.NAME, this is %s", kind, diagnose.Friendly(val)))
	return "", false
}
