package funcs

import (
	"errors"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// Convert is [convert.Convert] in time that is linear in the number of elements: the
// library sorts the types of all elements in quadratic time.
func Convert(v cty.Value, typ cty.Type) (cty.Value, error) {
	val, err := converted(v, typ)
	if err != nil && isExplained(v) {
		return convert.Convert(v, typ)
	}
	return val, err
}

// isExplained reports whether the library may convert a value once more, to explain
// why it cannot.
func isExplained(v cty.Value) bool {
	const most = 1000
	return !v.Type().IsTupleType() || v.Type().Length() <= most
}

func converted(v cty.Value, typ cty.Type) (cty.Value, error) {
	switch from := v.Type(); {
	case typ.IsObjectType() && v.IsKnown() && !v.IsNull() && from.IsObjectType():
		return convertAttributes(v, typ)
	case from.IsTupleType() && typ.IsListType():
		return toCollection(v, typ, cty.List)
	case from.IsTupleType() && typ.IsSetType():
		return toCollection(v, typ, cty.Set)
	case from.IsObjectType() && typ.IsMapType():
		return toCollection(v, typ, cty.Map)
	}
	return convert.Convert(v, typ)
}

// convertFunc is [typeexpr.ConvertFunc] with Convert.
func convertFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{
			{Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true, AllowDynamicType: true},
			{Type: typeexpr.TypeConstraintType},
		},
		Type: function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			val, err := Convert(args[0], typeexpr.TypeConstraintFromVal(args[1]))
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return val, nil
		},
	})
}

// convertAttributes converts an object of which some attributes may have many
// elements.
func convertAttributes(v cty.Value, typ cty.Type) (cty.Value, error) {
	v, marks := v.Unmark()
	attributes := v.AsValueMap()
	for name, val := range attributes {
		if !typ.HasAttribute(name) || !val.Type().IsTupleType() && !val.Type().IsObjectType() {
			continue
		}
		val, err := Convert(val, typ.AttributeType(name))
		if err != nil {
			return cty.NilVal, below(cty.GetAttrStep{Name: name}, err)
		}
		attributes[name] = val
	}
	if len(attributes) > 0 {
		v = cty.ObjectVal(attributes)
	}
	return convert.Convert(v.WithMarks(marks), typ)
}

// below is an error about a part of a value, as one about the whole.
func below(step cty.PathStep, err error) error {
	path := cty.Path{step}
	if inner, ok := errors.AsType[cty.PathError](err); ok {
		path = append(path, inner.Path...)
	}
	return path.NewErrorf("%s", err.Error())
}

// toCollection converts a tuple or an object to a collection of anything or of one
// type. Of anything, it unifies the distinct types of the elements only.
func toCollection(v cty.Value, typ cty.Type, of func(cty.Type) cty.Type) (cty.Value, error) {
	elem := typ.ElementType()
	if elem == cty.DynamicPseudoType {
		var ok bool
		if elem, ok = elementType(v.Type()); !ok {
			return convert.Convert(v, typ)
		}
	}
	made := elem.WithoutOptionalAttributesDeep()
	switch {
	case elem.HasDynamicTypes():
		return convert.Convert(v, typ)
	case !v.IsKnown() || v.IsNull():
		return convert.Convert(v, of(elem))
	}
	bare, marks := v.Unmark()
	var items []cty.Value
	named := map[string]cty.Value{}
	for it := bare.ElementIterator(); it.Next(); {
		key, item := it.Element()
		item, err := Convert(item, elem)
		if err != nil {
			step := cty.PathStep(cty.IndexStep{Key: key})
			if typ.IsMapType() {
				step = cty.GetAttrStep{Name: key.AsString()}
			}
			return cty.NilVal, below(step, err)
		}
		if !item.Type().Equals(made) {
			return convert.Convert(v, typ)
		}
		if typ.IsMapType() {
			named[key.AsString()] = item
			continue
		}
		items = append(items, item)
	}
	return collection(of(made), items, named).WithMarks(marks), nil
}

// collection is a list, a set or a map of elements that have one type.
func collection(typ cty.Type, items []cty.Value, named map[string]cty.Value) cty.Value {
	elem := typ.ElementType()
	switch {
	case typ.IsMapType() && len(named) == 0:
		return cty.MapValEmpty(elem)
	case typ.IsMapType():
		return cty.MapVal(named)
	case typ.IsSetType() && len(items) == 0:
		return cty.SetValEmpty(elem)
	case typ.IsSetType():
		return cty.SetVal(items)
	}
	return listOf(items, elem)
}

// maxElementTypes is of how many types the elements of one collection may be.
const maxElementTypes = 100

// elementType is the type that all elements of a tuple, or attributes of an
// object, can have.
func elementType(typ cty.Type) (cty.Type, bool) {
	var distinct []cty.Type
	add := func(t cty.Type) bool {
		for _, known := range distinct {
			if known.Equals(t) {
				return true
			}
		}
		distinct = append(distinct, t)
		return len(distinct) <= maxElementTypes && !t.HasDynamicTypes()
	}
	switch {
	case typ.IsTupleType():
		for _, t := range typ.TupleElementTypes() {
			if !add(t) {
				return cty.DynamicPseudoType, false
			}
		}
	case typ.IsObjectType():
		types := typ.AttributeTypes()
		for _, name := range slices.Sorted(maps.Keys(types)) {
			if !add(types[name]) {
				return cty.DynamicPseudoType, false
			}
		}
	}
	if len(distinct) == 0 {
		return cty.DynamicPseudoType, false
	}
	common, _ := convert.UnifyUnsafe(distinct)
	if common == cty.NilType || common.HasDynamicTypes() {
		return cty.DynamicPseudoType, false
	}
	return common, true
}

// unified is the type that some types have in common, NilType if there is none.
func unified(types []cty.Type) cty.Type {
	var distinct []cty.Type
	for _, t := range types {
		if len(distinct) <= maxElementTypes && !slices.ContainsFunc(distinct, t.Equals) {
			distinct = append(distinct, t)
		}
	}
	if len(distinct) > maxElementTypes {
		distinct = types
	}
	common, _ := convert.UnifyUnsafe(distinct)
	return common
}
