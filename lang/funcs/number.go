package funcs

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

func numberFunctions() []libraryFunction {
	return []libraryFunction{
		{
			name: "abs", text: "A number without its sign.", returns: "number", fn: stdlib.AbsoluteFunc,
			params: []string{"num: the number"}, example: `abs(-12.4)`,
		},
		{
			name: "ceil", text: "The smallest whole number that is not below a number.", returns: "number", fn: stdlib.CeilFunc,
			params: []string{"num: the number"}, example: `ceil(5.1)`,
		},
		{
			name: "floor", text: "The largest whole number that is not above a number.", returns: "number", fn: stdlib.FloorFunc,
			params: []string{"num: the number"}, example: `floor(4.9)`,
		},
		{
			name: "log", text: "The logarithm of a number.", returns: "number", fn: stdlib.LogFunc,
			params: []string{"num: the number", "base: the base of the logarithm"}, example: `ceil(log(15, 2))`,
		},
		{
			name: "max", text: "The largest of its arguments.", returns: "number", fn: stdlib.MaxFunc,
			params: []string{"numbers: one or more numbers"}, example: `max(12, 54, 3)`,
		},
		{
			name: "min", text: "The smallest of its arguments.", returns: "number", fn: stdlib.MinFunc,
			params: []string{"numbers: one or more numbers"}, example: `min([12, 54, 3]...)`,
		},
		{
			name: "parseint", text: "The whole number that a text stands for.", returns: "number", fn: stdlib.ParseIntFunc, limit: limitParseInt,
			params: []string{"number: the text, with a sign or without", "base: from 2 to 62"}, example: `parseint("ff", 16)`,
		},
		{
			name: "pow", text: "A number to the power of another.", returns: "number", fn: stdlib.PowFunc,
			params: []string{"num: the number", "power: the exponent"}, example: `pow(2, 10)`,
		},
		{
			name: "signum", text: "-1 for a negative number, 0 for zero, 1 for a positive one.", returns: "number", fn: stdlib.SignumFunc,
			params: []string{"num: a whole number"}, example: `signum(-13)`,
		},
		{
			name: "sum", text: "The sum of numbers. There must be one at least.", returns: "number", fn: sumFunc(),
			params: []string{"list: the numbers, a set too"}, example: `sum([10, 13, 6, 4.5])`,
		},
	}
}

func sumFunc() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.List(cty.Number)}},
		Type:         function.StaticReturnType(cty.Number),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if args[0].LengthInt() == 0 {
				return cty.NilVal, function.NewArgErrorf(0, "an empty list has no sum")
			}
			total := cty.Zero
			for it := args[0].ElementIterator(); it.Next(); {
				_, item := it.Element()
				if item.IsNull() {
					return cty.NilVal, function.NewArgErrorf(0, "null is no number")
				}
				if !item.IsKnown() {
					return cty.UnknownVal(cty.Number), nil
				}
				total = total.Add(item)
			}
			return total, nil
		},
	})
}
