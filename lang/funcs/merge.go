package funcs

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// mergeFunc is Terraform's. The library makes the type of the result, then the result with a
// type of its own, and compares the two. Of objects that are known the result alone has it.
func mergeFunc() function.Function {
	library := stdlib.MergeFunc
	return function.New(&function.Spec{
		Params: library.Params(), VarParam: library.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if knownObjects(args) {
				return cty.DynamicPseudoType, nil
			}
			return library.ReturnTypeForValues(args)
		},
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if knownObjects(args) {
				return mergedObjects(args), nil
			}
			return library.Call(args)
		},
	})
}

// knownObjects reports whether all values are objects whose attributes can be read.
func knownObjects(args []cty.Value) bool {
	for _, arg := range args {
		if v, _ := arg.Unmark(); !v.Type().IsObjectType() || !v.IsKnown() || v.IsNull() {
			return false
		}
	}
	return len(args) > 0
}

// mergedObjects is one object with the attributes of all, of which later ones win.
func mergedObjects(objects []cty.Value) cty.Value {
	n := 0
	for _, o := range objects {
		n += len(o.Type().AttributeTypes())
	}
	merged := make(map[string]cty.Value, n)
	var marks []cty.ValueMarks
	for _, o := range objects {
		o, own := o.Unmark()
		if len(own) > 0 {
			marks = append(marks, own)
		}
		for name := range o.Type().AttributeTypes() {
			merged[name] = o.GetAttr(name)
		}
	}
	return cty.ObjectVal(merged).WithMarks(marks...)
}
