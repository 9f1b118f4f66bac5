package funcs

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/customdecode"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/fray-ml/fray/lang/mark"
)

func conversionFunctions() []libraryFunction {
	v := []string{"v: the value"}
	return []libraryFunction{
		{
			name: "convert", text: "A value of a certain type, which may be any type that a variable can have, without optional().", returns: "any", fn: convertFunc(), limit: limitWeight,
			params: []string{"value: the value", "type: the type, without quotes"}, example: `convert({ a = "1", b = 2 }, map(number))`,
		},
		{
			name: "tobool", text: "A value as a bool: \"true\" and \"false\" too.", returns: "bool", fn: stdlib.MakeToFunc(cty.Bool),
			params: v, example: `tobool("true")`,
		},
		{
			name: "tolist", text: "A set or sequence as a list, whose elements have one type.", returns: "list(any)", fn: toCollectionFunc(cty.List), limit: limitWeight,
			params: v, example: `tolist(["a", "b", 3])`,
		},
		{
			name: "tomap", text: "An object as a map, whose elements have one type.", returns: "map(any)", fn: toCollectionFunc(cty.Map), limit: limitWeight,
			params: v, example: `tomap({ a = "foo", b = true })`,
		},
		{
			name: "tonumber", text: "A value as a number.", returns: "number", fn: stdlib.MakeToFunc(cty.Number), limit: limitParseInt,
			params: v, example: `tonumber("15.5")`,
		},
		{
			name: "toset", text: "A sequence as a set: without order, each element once.", returns: "set(any)", fn: toCollectionFunc(cty.Set), limit: limitWeight,
			params: v, example: `toset(["c", "b", "b"])`,
		},
		{
			name: "tostring", text: "A number or a bool as a string.", returns: "string", fn: stdlib.MakeToFunc(cty.String),
			params: v, example: `tostring(15.5)`,
		},
	}
}

func markFunctions() []libraryFunction {
	value := []string{"value: the value"}
	return []libraryFunction{
		{
			name: "ephemeralasnull", text: "A value with null for all of it that is ephemeral.", returns: "any", fn: ephemeralAsNullFunc(), ownMarks: true,
			params: value, example: `ephemeralasnull("x")`,
		},
		{
			name: "issensitive", text: "Whether a value is sensitive; what is in it does not count.", returns: "bool", fn: isSensitiveFunc(), ownMarks: true,
			params: value, example: `issensitive(sensitive("x"))`,
		},
		{
			name: "nonsensitive", text: "A value that is sensitive no more; what is in it may be.", returns: "any", ownMarks: true,
			fn:     marksFunc(mark.RemoveSensitive),
			params: value, example: `nonsensitive(sensitive("x"))`,
		},
		{
			name: "sensitive", text: "A value that is hidden wherever it flows.", returns: "any",
			fn:     marksFunc(mark.MakeSensitive),
			params: value, example: `issensitive("id-${sensitive("x")}")`,
		},
	}
}

func attemptFunctions() []libraryFunction {
	return []libraryFunction{
		{
			name: "can", text: "Whether an expression evaluates without an error.", returns: "bool", fn: canFunc(),
			params: []string{"expression: any"}, example: `can(tonumber("x"))`,
		},
		{
			name: "try", text: "The first of its arguments that evaluates without an error.", returns: "any", fn: tryFunc(),
			params: []string{"expressions: one or more"}, example: `try({ a = 1 }.b, "fallback")`,
		},
	}
}

// toCollectionFunc is stdlib.MakeToFunc for a kind of collection.
func toCollectionFunc(of func(cty.Type) cty.Type) function.Function {
	general := stdlib.MakeToFunc(of(cty.DynamicPseudoType))
	return function.New(&function.Spec{
		Params: general.Params(),
		Type:   function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			val, err := Convert(args[0], of(cty.DynamicPseudoType))
			if err != nil && isExplained(args[0]) {
				return general.Call(args)
			}
			return val, err
		},
	})
}

// marksFunc passes its argument through mark.
func marksFunc(mark func(cty.Value) cty.Value) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{anyValue()},
		Type:   function.StaticReturnType(cty.DynamicPseudoType),
		Impl:   func(args []cty.Value, _ cty.Type) (cty.Value, error) { return mark(args[0]), nil },
	})
}

// anyValue is a parameter that takes everything as it is.
func anyValue() function.Parameter {
	return function.Parameter{Type: cty.DynamicPseudoType, AllowUnknown: true, AllowNull: true, AllowMarked: true, AllowDynamicType: true}
}

func isSensitiveFunc() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{anyValue()},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if args[0].HasMark(mark.Sensitive{}) {
				return cty.True, nil
			}
			if !args[0].IsKnown() {
				return cty.UnknownVal(cty.Bool), nil // it may turn out to be
			}
			return cty.False, nil
		},
	})
}

func ephemeralAsNullFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{anyValue()},
		Type:   function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.Transform(args[0], func(_ cty.Path, v cty.Value) (cty.Value, error) {
				if !v.HasMark(mark.Ephemeral{}) {
					return v, nil
				}
				v, marks := v.Unmark()
				delete(marks, mark.Ephemeral{})
				if !v.IsKnown() { // its type may not be known either
					return v.WithMarks(marks), nil
				}
				return cty.NullVal(v.Type()).WithMarks(marks), nil
			})
		},
	})
}

// canFunc and tryFunc are those of hcl/ext/tryfunc with two differences: what
// comes of them is marked where it reveals something about a secret, and each
// expression is evaluated once, for twice at each level takes exponential time.
func canFunc() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: customdecode.ExpressionClosureType}},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			closure := customdecode.ExpressionClosureFromVal(args[0])
			val, diags := closure.Value()
			switch {
			case diags.HasErrors():
				return cty.False.WithMarks(marksOfFailure(closure, diags)), nil
			case !val.IsWhollyKnown():
				return cty.UnknownVal(cty.Bool).WithMarks(marksOfSuccess(closure, val)), nil
			}
			return cty.True.WithMarks(marksOfSuccess(closure, val)), nil
		},
	})
}

func tryFunc() function.Function {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Type: customdecode.ExpressionClosureType},
		Type:     function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if len(args) == 0 {
				return cty.NilVal, errors.New("want an expression at least")
			}
			var failures hcl.Diagnostics
			marks := cty.ValueMarks{}
			for _, arg := range args {
				closure := customdecode.ExpressionClosureFromVal(arg)
				val, diags := closure.Value()
				if !diags.HasErrors() {
					if !val.IsWhollyKnown() { // an error may come of it yet, and so another value and type
						_, some := val.UnmarkDeep()
						val = cty.DynamicVal.WithMarks(some)
					}
					return val.WithMarks(marks), nil
				}
				maps.Copy(marks, marksOfFailure(closure, diags))
				failures = append(failures, diags...)
			}
			if len(marks) > 0 {
				return cty.NilVal, secretError{marks: marks}
			}
			var reasons strings.Builder
			for _, d := range failures {
				fmt.Fprintf(&reasons, "\n- %s", strings.TrimSuffix(d.Detail, "."))
			}
			return cty.NilVal, fmt.Errorf("no expression evaluates:%s", reasons.String())
		},
	})
}

// marksOfFailure are the marks of what may have made an expression fail.
func marksOfFailure(closure *customdecode.ExpressionClosure, diags hcl.Diagnostics) cty.ValueMarks {
	marks := marksOfDiagnostics(diags)
	for _, traversal := range closure.Expression.Variables() {
		val, whole := reach(traversal, closure.EvalContext)
		_, some := val.Unmark()
		if whole {
			_, some = val.UnmarkDeep()
		}
		maps.Copy(marks, some)
	}
	return marks
}

// marksOfDiagnostics are those that failed functions hide.
func marksOfDiagnostics(diags hcl.Diagnostics) cty.ValueMarks {
	marks := cty.ValueMarks{}
	for _, d := range diags {
		if call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d); ok {
			if secret, is := errors.AsType[secretError](call.FunctionCallError()); is {
				maps.Copy(marks, secret.marks)
			}
		}
	}
	return marks
}

// marksOfSuccess are the marks of what an expression could have failed for.
// That a reference leads to a value is no secret, if all on its way is none.
func marksOfSuccess(closure *customdecode.ExpressionClosure, val cty.Value) cty.ValueMarks {
	if traversal, diags := hcl.AbsTraversalForExpr(closure.Expression); !diags.HasErrors() {
		way, _ := reach(traversal[:len(traversal)-1], closure.EvalContext)
		_, marks := way.Unmark()
		return marks
	}
	_, marks := val.UnmarkDeep()
	return marks
}

// reach returns what a reference leads to, as far as it leads, and whether that
// is to its end. The marks of what is on the way are those of the value too.
func reach(traversal hcl.Traversal, ctx *hcl.EvalContext) (cty.Value, bool) {
	for n := len(traversal); n > 0; n-- {
		if val, diags := traversal[:n].TraverseAbs(ctx); !diags.HasErrors() {
			return val, n == len(traversal)
		}
	}
	return cty.DynamicVal, false
}
