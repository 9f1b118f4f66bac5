package funcs

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

func mapFunctions() []libraryFunction {
	return []libraryFunction{
		{
			name: "keys", text: "The keys of a map, in the order of their characters.", returns: "list(string)", fn: stdlib.KeysFunc,
			params: []string{"map: a map or an object"}, example: `keys({ c = 3, a = 1 })`,
		},
		{
			name: "lookup", text: "The element of a map with a certain key.", returns: "any", fn: lookupFunc(), ownMarks: true,
			params:  []string{"map: a map or an object", "key: the key", "default: what to return if there is no such key; without it, that is an error"},
			example: `lookup({ a = "ay", b = "bee" }, "c", "what?")`,
		},
		{
			name: "merge", text: "Maps as one, in which later ones win.", returns: "any", fn: mergeFunc(),
			params: []string{"maps: maps or objects; null is taken for an empty one"}, example: `merge({ a = "b", c = "d" }, { c = "z" })`,
		},
		{
			name: "transpose", text: "A map of lists with its keys and elements exchanged.", returns: "map(list(string))", fn: transposeFunc(),
			params: []string{"values: the map"}, example: `transpose({ a = ["1", "2"], b = ["2"] })`,
		},
		{
			name: "values", text: "The elements of a map, in the order of their keys.", returns: "any", fn: stdlib.ValuesFunc,
			params: []string{"mapping: a map or an object"}, example: `values({ c = 3, a = 1 })`,
		},
		{
			name: "zipmap", text: "A map of keys and values.", returns: "any", fn: stdlib.ZipmapFunc,
			params: []string{"keys: strings", "values: as many"}, example: `zipmap(["a", "b"], [1, 2])`,
		},
	}
}

func setFunctions() []libraryFunction {
	return []libraryFunction{
		{
			name: "setintersection", text: "The elements that all sets have.", returns: "set(any)", fn: typedLater(stdlib.SetIntersectionFunc),
			params: []string{"first_set: a set or list", "other_sets: others"}, example: `setintersection(["a", "b"], ["b", "c"], ["b", "d"])`,
		},
		{
			name: "setproduct", text: "All combinations of an element of each set or list, as lists. Of lists it is a list, otherwise a set.", returns: "any",
			fn: stdlib.SetProductFunc, limit: limitProduct,
			params: []string{"sets: two or more"}, example: `setproduct(["dev", "prod"], ["a", "b"])`,
		},
		{
			name: "setsubtract", text: "The elements of a set that another does not have.", returns: "set(any)", fn: typedLater(stdlib.SetSubtractFunc),
			params: []string{"a: the set or list", "b: what is taken away"}, example: `setsubtract(["a", "b", "c"], ["a", "c"])`,
		},
		{
			name: "setunion", text: "The elements that any of the sets has.", returns: "set(any)", fn: typedLater(stdlib.SetUnionFunc),
			params: []string{"first_set: a set or list", "other_sets: others"}, example: `setunion(["a", "b"], ["b", "c"])`,
		},
	}
}

// typedLater makes a function of sets wait for the types of all its arguments,
// on which that of its result depends.
func typedLater(fn function.Function) function.Function {
	return function.New(&function.Spec{
		Params: fn.Params(), VarParam: fn.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			for _, arg := range args {
				if !arg.IsKnown() && arg.Type().HasDynamicTypes() {
					return cty.DynamicPseudoType, nil
				}
			}
			return fn.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, typ cty.Type) (cty.Value, error) {
			if typ == cty.DynamicPseudoType {
				return cty.DynamicVal, nil
			}
			return fn.Call(args)
		},
	})
}

// lookupFunc is Terraform's, which can do without a default, and needs of the
// map no more than the element. A default that is not used does not show.
func lookupFunc() function.Function {
	from, key, other := anyValue(), anyValue(), anyValue()
	from.AllowNull, key.AllowNull, key.Type = false, false, cty.String
	return function.New(&function.Spec{
		Params:   []function.Parameter{from, key},
		VarParam: &other,
		Type:     lookupType,
		Impl: func(args []cty.Value, typ cty.Type) (cty.Value, error) {
			from, marks := args[0].Unmark()
			key, keyMarks := args[1].Unmark()
			if !from.IsKnown() || !key.IsKnown() {
				val := cty.UnknownVal(typ).WithMarks(marks, keyMarks)
				for _, other := range args[2:] {
					_, otherMarks := other.Unmark()
					val = val.WithMarks(otherMarks)
				}
				return val, nil
			}
			val := cty.NilVal
			if ty := from.Type(); ty.IsObjectType() {
				if ty.HasAttribute(key.AsString()) {
					val = from.GetAttr(key.AsString())
				}
			} else if from.HasIndex(key).True() {
				val = from.Index(key)
			}
			if val == cty.NilVal {
				if len(args) < 3 {
					return cty.NilVal, function.NewArgErrorf(1, "there is no key %q, and no default is given", key.AsString())
				}
				var err error
				if val, err = convert.Convert(args[2], typ); err != nil {
					return cty.NilVal, function.NewArgErrorf(2, "the default must have the type of the elements: %w", err)
				}
			}
			return val.WithMarks(marks, keyMarks), nil
		},
	})
}

func lookupType(args []cty.Value) (cty.Type, error) {
	ty := args[0].Type()
	key, _ := args[1].Unmark()
	switch {
	case len(args) > 3:
		return cty.NilType, function.NewArgErrorf(3, "want a map, a key and at most one default")
	case ty == cty.DynamicPseudoType:
		return ty, nil
	case ty.IsMapType():
		return ty.ElementType(), nil
	case !ty.IsObjectType():
		return cty.NilType, function.NewArgErrorf(0, "want a map or an object")
	case key.IsKnown() && ty.HasAttribute(key.AsString()):
		return ty.AttributeType(key.AsString()), nil
	case key.IsKnown() && len(args) == 3:
		return args[2].Type(), nil
	}
	return cty.DynamicPseudoType, nil
}

func transposeFunc() function.Function {
	typ := cty.Map(cty.List(cty.String))
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: typ}},
		Type:         function.StaticReturnType(typ),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !args[0].IsWhollyKnown() {
				return cty.UnknownVal(typ), nil
			}
			lists := map[string][]cty.Value{}
			for it := args[0].ElementIterator(); it.Next(); {
				key, list := it.Element()
				if list.IsNull() {
					return cty.NilVal, function.NewArgErrorf(0, "the element %q is null", key.AsString())
				}
				for items := list.ElementIterator(); items.Next(); {
					_, item := items.Element()
					if item.IsNull() {
						return cty.NilVal, function.NewArgErrorf(0, "the element %q has null in it", key.AsString())
					}
					lists[item.AsString()] = append(lists[item.AsString()], key)
				}
			}
			if len(lists) == 0 {
				return cty.MapValEmpty(typ.ElementType()), nil
			}
			vals := make(map[string]cty.Value, len(lists))
			for key, items := range lists {
				vals[key] = cty.ListVal(items)
			}
			return cty.MapVal(vals), nil
		},
	})
}
