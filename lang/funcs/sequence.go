package funcs

import (
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// sequenceFunctions are those of lists, and of all collections.
func sequenceFunctions() []libraryFunction {
	return append(elementFunctions(), []libraryFunction{
		{
			name: "alltrue", text: "Whether all elements are true; an empty list is.", returns: "bool", fn: boolsFunc(false),
			params: []string{"list: bools"}, example: `alltrue([true, "true"])`,
		},
		{
			name: "anytrue", text: "Whether any element is true; none of an empty list is.", returns: "bool", fn: boolsFunc(true),
			params: []string{"list: bools"}, example: `anytrue([false, true])`,
		},
		{
			name: "chunklist", text: "A list cut into lists of a certain length; the last may be shorter.", returns: "list(list(any))", fn: stdlib.ChunklistFunc,
			params: []string{"list: the list", "size: of each part; with 0 there is one part"}, example: `chunklist(["a", "b", "c"], 2)`,
		},
		{
			name: "compact", text: "A list without null and empty strings.", returns: "list(string)", fn: stdlib.CompactFunc,
			params: []string{"list: strings"}, example: `compact(["a", "", null, "b"])`,
		},
		{
			name: "concat", text: "Lists one after the other as one list.", returns: "any", fn: stdlib.ConcatFunc,
			params: []string{"seqs: one list or more"}, example: `concat(["a"], ["b", "c"])`,
		},
		{
			name: "distinct", text: "A list with each element once, where it is first.", returns: "list(any)", fn: distinctFunc(),
			params: []string{"list: the list"}, example: `distinct(["a", "b", "a"])`,
		},
		{
			name: "flatten", text: "A list with the elements of its lists, at any depth, in their place.", returns: "any", fn: stdlib.FlattenFunc, limit: limitLeaves,
			params: []string{"list: of lists and other values"}, example: `flatten([["a", "b"], [], ["c"]])`,
		},
		{
			name: "range", text: "Numbers at equal distances, at most 1024 of them.", returns: "list(number)", fn: stdlib.RangeFunc,
			params: []string{"params: the limit, which is left out; or start and limit; or start, limit and step"}, example: `range(1, 4)`,
		},
		{
			name: "reverse", text: "A list with its elements in reverse.", returns: "any", fn: stdlib.ReverseListFunc,
			params: []string{"list: the list"}, example: `reverse([1, 2, 3])`,
		},
		{
			name: "sort", text: "Strings in the order of their characters.", returns: "list(string)", fn: stdlib.SortFunc,
			params: []string{"list: strings"}, example: `sort(["e", "d", "a"])`,
		},
	}...)
}

// elementFunctions find elements.
func elementFunctions() []libraryFunction {
	return []libraryFunction{
		{
			name: "coalesce", text: "The first of its arguments that is neither null nor an empty string.", returns: "any", fn: coalesceFunc(),
			params: []string{"vals: of one type"}, example: `coalesce(null, "", "b")`,
		},
		{
			name: "coalescelist", text: "The first of its arguments that is not empty.", returns: "any", fn: stdlib.CoalesceListFunc,
			params: []string{"vals: lists"}, example: `coalescelist([], ["b", "c"])`,
		},
		{
			name: "contains", text: "Whether a value is an element of a list or set.", returns: "bool", fn: containsFunc(),
			params: []string{"list: the list or set", "value: of the elements' type"}, example: `contains(["a", "b"], "a")`,
		},
		{
			name: "element", text: "An element of a list; beyond its end it starts again.", returns: "any", fn: stdlib.ElementFunc,
			params: []string{"list: the list", "index: from 0; counted from the end if negative"}, example: `element(["a", "b", "c"], 4)`,
		},
		{
			name: "index", text: "The position of the first element that equals a value. It is an error if none does.", returns: "number", fn: indexFunc(),
			params: []string{"list: the list", "value: the one to find"}, example: `index(["a", "b", "c"], "b")`,
		},
		{
			name: "length", text: "The number of elements of a collection, or of characters of a string.", returns: "number", fn: lengthFunc(),
			params: []string{"value: a list, set, map, object or string"}, example: `length(["a", "b"])`,
		},
		{
			name: "matchkeys", text: "The elements whose keys are among certain ones.", returns: "list(any)", fn: matchKeysFunc(),
			params:  []string{"values: the elements", "keys: of each element, in their order", "searchset: the keys to find"},
			example: `matchkeys(["i-1", "i-2", "i-3"], ["west", "east", "east"], ["east"])`,
		},
		{
			name: "one", text: "The only element of a list or set, null of an empty one.", returns: "any", fn: oneFunc(),
			params: []string{"list: the list or set"}, example: `one(["a"])`,
		},
		{
			name: "slice", text: "Elements of a list that follow each other.", returns: "any", fn: stdlib.SliceFunc,
			params: []string{"list: the list", "start_index: of the first", "end_index: of what follows the last"}, example: `slice(["a", "b", "c", "d"], 1, 3)`,
		},
	}
}

// lengthFunc is the standard length, for strings too.
func lengthFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Type: cty.DynamicPseudoType, AllowDynamicType: true, AllowUnknown: true, AllowMarked: true}},
		Type: func(args []cty.Value) (cty.Type, error) {
			ty := args[0].Type()
			if ty == cty.String || ty == cty.DynamicPseudoType || ty.IsCollectionType() || ty.IsTupleType() || ty.IsObjectType() {
				return cty.Number, nil
			}
			return cty.NilType, function.NewArgErrorf(0, "want a list, a map, a set or a string")
		},
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			val, marks := args[0].Unmark()
			var n cty.Value
			var err error
			switch ty := val.Type(); {
			case ty == cty.String:
				n, err = stdlib.Strlen(val)
			case ty.IsObjectType():
				n = cty.NumberIntVal(int64(len(ty.AttributeTypes())))
			case ty == cty.DynamicPseudoType:
				n = cty.UnknownVal(cty.Number)
			default:
				n = val.Length()
			}
			if err != nil {
				return cty.NilVal, err
			}
			return n.WithMarks(marks), nil
		},
	})
}

// containsFunc is the standard contains, but null is nothing to look for: whether
// it equals an element would never be known.
func containsFunc() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.DynamicPseudoType}, {Type: cty.DynamicPseudoType}},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return stdlib.Contains(args[0], args[1])
		},
	})
}

func indexFunc() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.DynamicPseudoType}, {Type: cty.DynamicPseudoType}},
		Type:         function.StaticReturnType(cty.Number),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if ty := args[0].Type(); !ty.IsListType() && !ty.IsTupleType() {
				return cty.NilVal, function.NewArgErrorf(0, "want a list")
			}
			i := int64(0)
			for it := args[0].ElementIterator(); it.Next(); i++ {
				_, item := it.Element()
				equal, err := stdlib.Equal(item, args[1])
				if err != nil || !equal.IsKnown() {
					return cty.UnknownVal(cty.Number), err
				}
				if equal.True() {
					return cty.NumberIntVal(i), nil
				}
			}
			return cty.NilVal, errors.New("no element equals the value")
		},
	})
}

// boolsFunc returns want if an element of a list is want, and else its opposite.
func boolsFunc(want bool) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.List(cty.Bool)}},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := false
			for it := args[0].ElementIterator(); it.Next(); {
				_, item := it.Element()
				switch {
				case !item.IsKnown():
					unknown = true
				case (!item.IsNull() && item.True()) == want: // null is not true
					return cty.BoolVal(want), nil
				}
			}
			if unknown {
				return cty.UnknownVal(cty.Bool), nil
			}
			return cty.BoolVal(!want), nil
		},
	})
}

// coalesceFunc is Terraform's: it passes over empty strings as well. An argument
// whose type is not known yet may change the type of what it returns.
func coalesceFunc() function.Function {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true, AllowNull: true},
		Type: func(args []cty.Value) (cty.Type, error) {
			types := []cty.Type{}
			for _, arg := range args {
				switch {
				case arg.Type() != cty.DynamicPseudoType:
					types = append(types, arg.Type())
				case !arg.IsNull():
					return cty.DynamicPseudoType, nil
				}
			}
			if len(types) == 0 {
				return cty.NilType, errors.New("all arguments are null or empty strings")
			}
			typ := unified(types)
			if typ == cty.NilType {
				return cty.NilType, errors.New("all arguments must have the same type")
			}
			return typ, nil
		},
		RefineResult: notNull,
		Impl: func(args []cty.Value, typ cty.Type) (cty.Value, error) {
			if typ == cty.DynamicPseudoType {
				return cty.DynamicVal, nil
			}
			for i, arg := range args {
				if !arg.IsKnown() {
					return cty.UnknownVal(typ), nil
				}
				if arg.IsNull() {
					continue
				}
				val, err := convert.Convert(arg, typ)
				if err != nil {
					return cty.NilVal, function.NewArgError(i, err)
				}
				if typ == cty.String && val.AsString() == "" {
					continue
				}
				return val, nil
			}
			return cty.NilVal, errors.New("all arguments are null or empty strings")
		},
	})
}

// distinctFunc finds each element in a set, since comparing it with all others
// takes quadratic time.
func distinctFunc() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.List(cty.DynamicPseudoType)}},
		Type:         func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		RefineResult: notNull,
		Impl: func(args []cty.Value, typ cty.Type) (cty.Value, error) {
			if !args[0].IsWhollyKnown() {
				return cty.UnknownVal(typ), nil
			}
			seen := cty.NewValueSet(typ.ElementType())
			var items []cty.Value
			for it := args[0].ElementIterator(); it.Next(); {
				if _, item := it.Element(); !seen.Has(item) {
					seen.Add(item)
					items = append(items, item)
				}
			}
			return listOf(items, typ.ElementType()), nil
		},
	})
}

func listOf(items []cty.Value, elem cty.Type) cty.Value {
	if len(items) == 0 {
		return cty.ListValEmpty(elem)
	}
	return cty.ListVal(items)
}

func matchKeysFunc() function.Function {
	list := function.Parameter{Type: cty.List(cty.DynamicPseudoType)}
	return function.New(&function.Spec{
		Params: []function.Parameter{list, list, list},
		Type: func(args []cty.Value) (cty.Type, error) {
			if common, _ := convert.UnifyUnsafe([]cty.Type{args[1].Type(), args[2].Type()}); common == cty.NilType {
				return cty.NilType, function.NewArgErrorf(2, "want the type that keys has")
			}
			return args[0].Type(), nil
		},
		RefineResult: notNull,
		Impl: func(args []cty.Value, typ cty.Type) (cty.Value, error) {
			values, keys, wanted := args[0], args[1], args[2]
			if !keys.IsWhollyKnown() || !wanted.IsWhollyKnown() {
				return cty.UnknownVal(typ), nil
			}
			if values.LengthInt() != keys.LengthInt() {
				return cty.NilVal, function.NewArgErrorf(1, "there are %d keys for %d values", keys.LengthInt(), values.LengthInt())
			}
			common, _ := convert.UnifyUnsafe([]cty.Type{keys.Type(), wanted.Type()})
			keys, err := convert.Convert(keys, common)
			if err != nil {
				return cty.NilVal, function.NewArgError(1, err)
			}
			if wanted, err = convert.Convert(wanted, common); err != nil {
				return cty.NilVal, function.NewArgError(2, err)
			}
			set := cty.NewValueSet(common.ElementType())
			for it := wanted.ElementIterator(); it.Next(); {
				_, key := it.Element()
				set.Add(key)
			}
			var items []cty.Value
			for it, i := keys.ElementIterator(), int64(0); it.Next(); i++ {
				if _, key := it.Element(); set.Has(key) {
					items = append(items, values.Index(cty.NumberIntVal(i)))
				}
			}
			return listOf(items, typ.ElementType()), nil
		},
	})
}

func oneFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Type: cty.DynamicPseudoType}},
		Type: func(args []cty.Value) (cty.Type, error) {
			ty := args[0].Type()
			switch {
			case ty.IsListType() || ty.IsSetType():
				return ty.ElementType(), nil
			case ty.IsTupleType() && ty.Length() == 0:
				return cty.DynamicPseudoType, nil
			case ty.IsTupleType() && ty.Length() == 1:
				return ty.TupleElementType(0), nil
			case ty.IsTupleType():
				return cty.NilType, function.NewArgErrorf(0, "want one element or none, there are %d", ty.Length())
			}
			return cty.NilType, function.NewArgErrorf(0, "want a list or a set")
		},
		Impl: func(args []cty.Value, typ cty.Type) (cty.Value, error) {
			if !args[0].Length().IsKnown() {
				return cty.UnknownVal(typ), nil
			}
			switch n := args[0].LengthInt(); n {
			case 0:
				return cty.NullVal(typ), nil
			case 1:
				it := args[0].ElementIterator()
				it.Next()
				_, item := it.Element()
				return item, nil
			default:
				return cty.NilVal, function.NewArgError(0, fmt.Errorf("want one element or none, there are %d", n))
			}
		},
	})
}
