package funcs

import (
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/customdecode"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"

	langmark "github.com/fray-ml/fray/lang/mark"
)

// sampleCall is a call with arguments that mean something to the function.
type sampleCall struct {
	source string
	name   string
	fn     function.Function
	args   []cty.Value
}

// with calls with another argument, converted as an expression converts it.
func (c sampleCall) with(i int, arg cty.Value) (cty.Value, error) {
	arg, err := convert.Convert(arg, c.param(i).Type)
	if err != nil {
		return cty.NilVal, err
	}
	args := append([]cty.Value(nil), c.args...)
	args[i] = arg
	return c.fn.Call(args)
}

func (c sampleCall) param(i int) function.Parameter {
	if params := c.fn.Params(); i < len(params) {
		return params[i]
	}
	return *c.fn.VarParam()
}

// sampleCalls are the calls of the examples and of what Terraform was asked.
func sampleCalls(t *testing.T) []sampleCall {
	t.Helper()
	fns := InDirectory(functionFiles(t))
	ctx := &hcl.EvalContext{Functions: fns}
	var sources []string
	for _, d := range Docs() {
		sources = append(sources, d.Example)
	}
	for _, c := range readTerraformAnswers(t).Cases {
		sources = append(sources, c.Expression)
	}
	var calls []sampleCall
	for _, source := range sources {
		expr, diags := hclsyntax.ParseExpression([]byte(source), "", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		call, ok := expr.(*hclsyntax.FunctionCallExpr)
		if !ok || call.ExpandFinal {
			continue
		}
		c := sampleCall{source: source, name: call.Name, fn: fns[call.Name]}
		for i, arg := range call.Args {
			param := c.param(i)
			if customdecode.CustomExpressionDecoderForType(param.Type) != nil {
				break // of expressions there are tests of their own
			}
			val, diags := arg.Value(ctx)
			if diags.HasErrors() {
				t.Fatalf("%s: %v", source, diags)
			}
			if val, err := convert.Convert(val, param.Type); err == nil {
				c.args = append(c.args, val)
			}
		}
		if len(c.args) == len(call.Args) {
			calls = append(calls, c)
		}
	}
	if len(calls) < 400 {
		t.Fatalf("there are %d calls only", len(calls))
	}
	return calls
}

// lifts reports whether a function may take off a mark of a whole argument.
func (c sampleCall) lifts(i int, mark any) bool {
	switch c.name {
	case "nonsensitive":
		return mark == langmark.Sensitive{}
	case "ephemeralasnull":
		return mark == langmark.Ephemeral{}
	case "issensitive":
		return true
	case "lookup":
		return i == 2 // a default that is not needed is not shown
	}
	return false
}

// TestFunctionsKeepMarks: what is made of a marked argument is marked.
func TestFunctionsKeepMarks(t *testing.T) {
	t.Parallel()
	n := 0
	for _, c := range sampleCalls(t) {
		for i, arg := range c.args {
			for _, mark := range []any{langmark.Sensitive{}, langmark.Ephemeral{}} {
				for _, marked := range []cty.Value{arg.Mark(mark), cty.UnknownVal(arg.Type()).Mark(mark), cty.DynamicVal.Mark(mark)} {
					val, err := c.with(i, marked)
					if err != nil {
						if err.Error() != (secretError{}).Error() {
							t.Errorf("%s with argument %d marked says %v", c.source, i, err)
						}
						continue
					}
					n++
					if !val.HasMark(mark) && !c.lifts(i, mark) {
						t.Errorf("%s with argument %d marked %T is %#v", c.source, i, mark, val)
					}
				}
			}
		}
	}
	if n < 1000 {
		t.Errorf("%d calls succeeded only", n)
	}
}

// leaves returns the paths of all values in a value that contain no others.
func leaves(v cty.Value) []cty.Path {
	var paths []cty.Path
	_ = cty.Walk(v, func(p cty.Path, v cty.Value) (bool, error) {
		if len(p) > 0 && v.Type().IsPrimitiveType() && !v.IsNull() {
			paths = append(paths, p.Copy())
		}
		return true, nil
	})
	return paths
}

func replaceAt(t *testing.T, v cty.Value, at cty.Path, of func(cty.Value) cty.Value) cty.Value {
	t.Helper()
	out, err := cty.Transform(v, func(p cty.Path, v cty.Value) (cty.Value, error) {
		if p.Equals(at) {
			return of(v), nil
		}
		return v, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func otherThan(v cty.Value) cty.Value {
	switch v.Type() {
	case cty.String:
		return cty.StringVal(v.AsString() + "x")
	case cty.Number:
		return v.Add(cty.NumberIntVal(1))
	}
	return v.Not()
}

// visible is a value with all that is marked hidden.
func visible(t *testing.T, v cty.Value) cty.Value {
	t.Helper()
	out, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if v.HasMark(langmark.Sensitive{}) {
			if t := v.Type(); t.IsPrimitiveType() {
				return cty.NullVal(t), nil
			}
			return cty.NullVal(cty.DynamicPseudoType), nil // its type is hidden as well
		}
		return v, nil
	})
	if err != nil { // elements of a list are of several types now
		t.Fatal(err)
	}
	return out
}

// TestFunctionsRevealNothing: what is visible of a result does not depend on what
// is marked within an argument.
func TestFunctionsRevealNothing(t *testing.T) {
	t.Parallel()
	n := 0
	for _, c := range sampleCalls(t) {
		for i, arg := range c.args {
			if !arg.IsWhollyKnown() || arg.Type().IsSetType() || arg.ContainsMarked() {
				continue
			}
			for _, leaf := range leaves(arg) {
				secret := func(v cty.Value) cty.Value { return v.Mark(langmark.Sensitive{}) }
				one, err1 := c.with(i, replaceAt(t, arg, leaf, secret))
				two, err2 := c.with(i, replaceAt(t, arg, leaf, func(v cty.Value) cty.Value { return secret(otherThan(v)) }))
				switch {
				case err1 != nil && err2 != nil:
					if err1.Error() != err2.Error() {
						t.Errorf("%s reveals a secret: %v, or else %v", c.source, err1, err2)
					}
				case err1 == nil && err2 == nil:
					n++
					if a, b := visible(t, one), visible(t, two); !a.RawEquals(b) {
						t.Errorf("%s reveals a secret: %#v, or else %#v", c.source, a, b)
					}
				}
			}
		}
	}
	if n < 200 {
		t.Errorf("%d calls succeeded only", n)
	}
}

// TestFunctionsOfUnknown: nothing is known of what depends on the unknown, and
// what is known is right.
func TestFunctionsOfUnknown(t *testing.T) {
	t.Parallel()
	for _, c := range sampleCalls(t) {
		want, wantErr := c.fn.Call(c.args)
		if wantErr != nil {
			continue
		}
		for i, arg := range c.args {
			unknowns := []cty.Value{cty.UnknownVal(arg.Type()), cty.DynamicVal}
			for _, leaf := range leaves(arg) {
				if !arg.Type().IsSetType() && !arg.ContainsMarked() {
					unknowns = append(unknowns, replaceAt(t, arg, leaf, func(v cty.Value) cty.Value { return cty.UnknownVal(v.Type()) }))
				}
			}
			for _, unknown := range unknowns {
				got, err := c.with(i, unknown)
				if err != nil {
					t.Errorf("%s with %#v for argument %d: %v", c.source, unknown, i, err)
					continue
				}
				if errs := want.Type().TestConformance(got.Type()); errs != nil && !got.Type().HasDynamicTypes() {
					t.Errorf("%s with %#v for argument %d is of %#v, want %#v", c.source, unknown, i, got.Type(), want.Type())
				}
				if got.IsWhollyKnown() && !got.RawEquals(want) && c.name != "issensitive" {
					t.Errorf("%s with %#v for argument %d is %#v, and else %#v", c.source, unknown, i, got, want)
				}
			}
		}
	}
}

// oddValues are what no function is made for.
func oddValues() []cty.Value {
	return []cty.Value{
		cty.NullVal(cty.DynamicPseudoType), cty.NullVal(cty.String), cty.NullVal(cty.List(cty.String)), cty.EmptyObjectVal, cty.EmptyTupleVal,
		cty.StringVal(""), cty.StringVal("\x00\xff%/"), cty.StringVal("/(/"), cty.StringVal(strings.Repeat("9", 400)),
		cty.NumberIntVal(-1), cty.MustParseNumberVal("1e400"), cty.MustParseNumberVal("0.5"), cty.PositiveInfinity, cty.NegativeInfinity, cty.True,
		cty.ListValEmpty(cty.DynamicPseudoType), cty.ListVal([]cty.Value{cty.NullVal(cty.String)}), cty.SetValEmpty(cty.String),
		cty.SetVal([]cty.Value{cty.UnknownVal(cty.String), cty.StringVal("a")}), cty.UnknownVal(cty.Set(cty.String)),
		cty.MapValEmpty(cty.List(cty.String)), cty.MapVal(map[string]cty.Value{"a": cty.NullVal(cty.List(cty.String))}),
		cty.TupleVal([]cty.Value{cty.NullVal(cty.DynamicPseudoType), cty.True, cty.DynamicVal}),
		cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("x").Mark(langmark.Sensitive{}), "b": cty.DynamicVal}),
		cty.ListVal([]cty.Value{cty.PositiveInfinity, cty.NegativeInfinity}),
	}
}

// TestFunctionsOfOddValues: a function that is called with what makes no sense
// has an error of its own, and does not fall over.
func TestFunctionsOfOddValues(t *testing.T) {
	t.Parallel()
	for _, c := range sampleCalls(t) {
		for i := range c.args {
			for _, odd := range oddValues() {
				if _, err := c.with(i, odd); err != nil && strings.Contains(err.Error(), "it cannot work with") {
					t.Errorf("%s with %#v for argument %d: %v", c.source, odd, i, err)
				}
			}
		}
	}
}

// TestAttemptsKeepMarks: can and try reveal nothing about a secret.
func TestAttemptsKeepMarks(t *testing.T) {
	t.Parallel()
	secret := func(v cty.Value) cty.Value { return v.Mark(langmark.Sensitive{}) }
	ctx := &hcl.EvalContext{
		Functions: InDirectory(t.TempDir()),
		Variables: map[string]cty.Value{
			"token":   secret(cty.StringVal("hidden")),
			"list":    secret(cty.ListVal([]cty.Value{cty.StringVal("hidden")})),
			"object":  cty.ObjectVal(map[string]cty.Value{"token": secret(cty.StringVal("hidden")), "plain": cty.StringVal("x")}),
			"plain":   cty.StringVal("x"),
			"unknown": secret(cty.UnknownVal(cty.String)),
			"later":   cty.UnknownVal(cty.String),
		},
	}
	for source, want := range map[string]bool{ // whether the result is sensitive
		`can(tonumber(token))`:                    true,
		`can(upper(token))`:                       true,
		`can(token)`:                              false,
		`can(object.token)`:                       false,
		`can(object.missing)`:                     false,
		`can(list[0])`:                            true,
		`can(list[7])`:                            true,
		`can(tonumber(plain))`:                    false,
		`can(tonumber(sensitive("x")))`:           true,
		`can(tonumber(unknown))`:                  true,
		`can(tonumber(later))`:                    false,
		`try(tonumber(token), 0)`:                 true,
		`try(object.missing, "x")`:                false,
		`try(list[7], "x")`:                       true,
		`try(token)`:                              true,
		`try(unknown, "x")`:                       true,
		`try(later, "x")`:                         false,
		`try(later, token)`:                       false,
		`try(tonumber(sensitive("x")), "y")`:      true,
		`try(try(tonumber(token)), "y")`:          true,
		`try(plain, token)`:                       false,
		`try(try(tonumber(sensitive("x"))), "y")`: true,
		`try(templatestring("$${tonumber(sensitive(\"x\"))}", {}), "y")`: true,
		`can(templatestring("$${1 + t}", {t = token}))`:                  true,
	} {
		val, diags := evaluateExpression(t, ctx, source)
		if diags.HasErrors() {
			t.Errorf("%s: %v", source, diags)
			continue
		}
		if got := langmark.IsSensitive(val); got != want {
			t.Errorf("%s is %#v; sensitive is %v, want %v", source, val, got, want)
		}
	}
	for _, source := range []string{
		`try(tonumber(token))`, `jsondecode(token)`, `tonumber(sensitive("hidden"))`, `file(token)`, `fileset(".", "[${token}")`, `filesha256(token)`,
		`templatefile(token, {})`, `regex(token, "x")`, `index(["a"], token)`, `index([token], "a")`, `cidrhost(token, 1)`, `formatdate("YYYY", token)`,
		`convert(token, number)`, `tpu(token)`, `try(tonumber(sensitive("hidden")))`, `templatestring("$${tonumber(t)}", { t = token })`, `{ a = 1 }[token]`,
		`templatestring("$${tonumber(sensitive(\"hidden\"))}", {})`, `uuidv5(token, "x")`, `lookup({}, token)`, `tomap({ a = token })["b"]`,
	} {
		_, diags := evaluateExpression(t, ctx, source)
		if !diags.HasErrors() {
			t.Errorf("%s has no error", source)
		}
		if text := diags.Error(); strings.Contains(text, "hidden") {
			t.Errorf("%s says %s", source, text)
		}
	}
}

// TestEphemeralAsNull: null stands for what is ephemeral, and for nothing else.
func TestEphemeralAsNull(t *testing.T) {
	t.Parallel()
	ephemeral, secret := langmark.Ephemeral{}, langmark.Sensitive{}
	fn := InDirectory("")["ephemeralasnull"]
	for name, c := range map[string]struct{ in, want cty.Value }{
		"plain":     {cty.StringVal("x"), cty.StringVal("x")},
		"whole":     {cty.StringVal("x").Mark(ephemeral), cty.NullVal(cty.String)},
		"sensitive": {cty.StringVal("x").Mark(ephemeral).Mark(secret), cty.NullVal(cty.String).Mark(secret)},
		"unknown":   {cty.UnknownVal(cty.String).Mark(ephemeral), cty.UnknownVal(cty.String)},
		"part": {
			cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("x").Mark(ephemeral), "b": cty.StringVal("y").Mark(secret)}),
			cty.ObjectVal(map[string]cty.Value{"a": cty.NullVal(cty.String), "b": cty.StringVal("y").Mark(secret)}),
		},
	} {
		got, err := fn.Call([]cty.Value{c.in})
		if err != nil || !got.RawEquals(c.want) {
			t.Errorf("%s: got %#v, %v, want %#v", name, got, err, c.want)
		}
	}
}

// TestConvertType: the type is written as in a variable.
func TestConvertType(t *testing.T) {
	t.Parallel()
	ctx := &hcl.EvalContext{Functions: InDirectory("")}
	val, diags := evaluateExpression(t, ctx, `convert(["1"], list(number))`)
	if diags.HasErrors() || typeexpr.TypeString(val.Type()) != "list(number)" {
		t.Errorf("got %#v, %v", val, diags)
	}
	if _, diags := evaluateExpression(t, ctx, `convert(["x"], list(number))`); !diags.HasErrors() {
		t.Error("a list of words became one of numbers")
	}
}
