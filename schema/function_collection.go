package schema

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// toCollectionFunc is stdlib.MakeToFunc for a kind of collection. Where all
// elements have one type already it says so, for finding the type that many
// elements have in common takes quadratic time.
func toCollectionFunc(of func(cty.Type) cty.Type) function.Function {
	general := stdlib.MakeToFunc(of(cty.DynamicPseudoType))
	return function.New(&function.Spec{
		Description: general.Description(),
		Params:      general.Params(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if elem, ok := elementType(args[0].Type()); ok && convert.GetConversionUnsafe(args[0].Type(), of(elem)) != nil {
				return of(elem), nil
			}
			return general.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, typ cty.Type) (cty.Value, error) {
			if elem, ok := elementType(args[0].Type()); ok && typ.Equals(of(elem)) {
				return convert.Convert(args[0], typ)
			}
			return general.Call(args)
		},
	})
}

// elementType is the type that all elements of a tuple, or attributes of an
// object, have.
func elementType(typ cty.Type) (cty.Type, bool) {
	var common cty.Type
	same := func(t cty.Type) bool {
		if common == cty.NilType {
			common = t
		}
		return t.Equals(common) && !t.HasDynamicTypes()
	}
	switch {
	case typ.IsTupleType():
		for _, t := range typ.TupleElementTypes() {
			if !same(t) {
				return cty.NilType, false
			}
		}
	case typ.IsObjectType():
		for _, t := range typ.AttributeTypes() {
			if !same(t) {
				return cty.NilType, false
			}
		}
	}
	return common, common != cty.NilType
}
