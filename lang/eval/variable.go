package eval

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/funcs"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/lang/mark"
	"github.com/fray-ml/fray/lang/syntax"
	"github.com/fray-ml/fray/schema"
)

// variable is a variable block, decoded.
type variable struct {
	name      string
	block     *configs.Block
	typ       cty.Type
	defaults  *typeexpr.Defaults
	fallback  cty.Value // NilVal without a default
	sensitive bool
	nullable  bool
	ephemeral bool

	description string
}

// given is a value of a variable as it came from outside.
type given struct {
	text string         // as it was typed
	expr hcl.Expression // in a variable file, instead of a text
	rng  *hcl.Range     // of expr
	from string         // where a text came from, for people; "": fray asked for it
}

// evaluateVariables gives every variable of the root its value: the default, or
// what comes last of the environment, the variable files and the command line.
func (e *Evaluator) evaluateVariables() {
	vars := make(map[string]*variable, len(e.Decls.Variables))
	for _, name := range e.Decls.VariableNames() {
		vars[name] = e.variable(e.Decls.Variables[name])
	}
	e.Session.checkTest()
	values := givenValues(e.Session, vars)
	for _, name := range e.Decls.VariableNames() {
		s := configs.Symbol{Root: configs.RootVar, Name: name}
		if e.failed[s] { // its block is wrong, and reported
			e.Variables[name] = cty.DynamicVal
			continue
		}
		v := vars[name]
		g, isGiven := values[name]
		var val cty.Value
		var problem *hcl.Diagnostic
		switch assigned, isAssigned := e.Options.Assigned[name]; {
		case isAssigned:
			val, problem = v.assigned(assigned)
		case isGiven:
			val, problem = v.given(g)
		case v.fallback == cty.NilVal && e.Options.Partial:
			e.Partial = true
			val = v.mark(cty.UnknownVal(v.typ))
		case v.fallback == cty.NilVal:
			problem = v.unset()
		default:
			val = v.mark(v.fallback)
		}
		if problem != nil {
			e.Add(problem)
			e.failed[s] = true
			val = cty.DynamicVal
		}
		e.Variables[name] = val
	}
}

// variable decodes a variable block.
func (e *Evaluator) variable(b *configs.Block) *variable {
	v := &variable{name: b.Name, block: b, typ: cty.DynamicPseudoType, nullable: true}
	wrong := func() { e.failed[configs.Symbol{Root: configs.RootVar, Name: b.Name}] = true }
	if x := b.Attr("type"); x != nil {
		typ, defaults, diags := typeexpr.TypeConstraintWithDefaults(x.Expr)
		e.Extend(typeHints(diags))
		if diags.HasErrors() {
			wrong()
		} else {
			v.typ, v.defaults = typ, defaults
		}
	}
	v.sensitive = e.ConstantBool(b.Attr("sensitive"), false)
	v.nullable = e.ConstantBool(b.Attr("nullable"), true)
	v.ephemeral = e.ConstantBool(b.Attr("ephemeral"), false)
	v.description = e.ConstantString(b.Attr("description"))
	if e.Parent != nil && e.CallBlock().Type.Attr(b.Name) != nil {
		e.ErrorAt(b.Range(), "Reserved name", fmt.Sprintf("A call of a module has %s itself: give the variable another name.", b.Name))
		wrong()
	}
	if x := b.Attr("default"); x != nil {
		val, ok := e.constant(x)
		if ok {
			converted, err := v.convert(val)
			if err != nil {
				e.ErrorAt(x.Expr.Range(), "Invalid value for default", diagnose.Sentence(conversionError(err, v.typ)))
				ok = false
			}
			v.fallback = converted
		}
		if !ok {
			wrong()
			v.fallback = cty.DynamicVal
		}
	}
	return v
}

// convert fits a value to the variable's type.
func (v *variable) convert(val cty.Value) (cty.Value, error) {
	if v.defaults != nil && !val.IsNull() {
		plain, marks := val.UnmarkDeepWithPaths()
		val = v.defaults.Apply(plain).MarkWithPaths(marks)
	}
	return funcs.Convert(val, v.typ)
}

// given reads, converts and checks a value that comes from outside.
func (v *variable) given(g given) (cty.Value, *hcl.Diagnostic) {
	val, err := v.read(g)
	if err != nil {
		return cty.NilVal, v.wrongGiven(g, err.Error())
	}
	if val.IsNull() && !v.nullable && v.fallback != cty.NilVal {
		return v.mark(v.fallback), nil
	}
	val, err = v.convert(val)
	switch {
	case err != nil:
		return cty.NilVal, v.wrongGiven(g, v.misfit(err, v.sensitive || v.ephemeral))
	case val.IsNull() && !v.nullable:
		return cty.NilVal, v.wrongGiven(g, "it must not be null")
	}
	return v.mark(val), nil
}

func (v *variable) mark(val cty.Value) cty.Value {
	if v.sensitive {
		val = mark.MakeSensitive(val)
	}
	if v.ephemeral {
		val = val.Mark(mark.Ephemeral{})
	}
	return val
}

// unset reports that a variable must be given a value.
func (v *variable) unset() *hcl.Diagnostic {
	d := diagnose.ErrorAt(v.block.Range(), "Variable without a value", fmt.Sprintf(
		"%s has no default, so it must be given: --var '%s=…', %s%s=…, a line in %s, or a default here.", v.name, v.name, VariablePrefix, v.name, load.VariableFileName))
	d.Extra = diagnose.Unset{Name: v.name, Type: typeexpr.TypeString(v.typ), Description: v.description, Sensitive: v.sensitive}
	return d
}

// wrongGiven is the error of a value from outside that the variable cannot have.
func (v *variable) wrongGiven(g given, why string) *hcl.Diagnostic {
	if g.rng != nil && v.sensitive { // the line would show the value
		g.from, g.rng = diagnose.Place(*g.rng), nil
	}
	if g.rng != nil {
		return v.invalid(*g.rng, diagnose.Sentence(why))
	}
	detail := diagnose.Sentence(why)
	if g.from != "" {
		detail = fmt.Sprintf("The value from %s does not fit: %s.", g.from, why)
	}
	return v.invalid(v.block.Range(), detail)
}

// invalid is the error of a value that the variable cannot have.
func (v *variable) invalid(rng hcl.Range, detail string) *hcl.Diagnostic {
	d := diagnose.ErrorAt(rng, "Invalid value for var."+v.name, detail)
	d.Extra = diagnose.InvalidValue
	return d
}

// validate checks the validation blocks of a variable.
func (e *Evaluator) validate(name string) {
	if e.failed[configs.Symbol{Root: configs.RootVar, Name: name}] {
		return
	}
	b := e.Decls.Variables[name]
	for _, validation := range b.Blocks["validation"] {
		held := e.Holds(validation, nil)
		if held.Status != schema.ConditionFails {
			continue
		}
		d := ValueError(held.Range, held.Expr, held.Context, "Invalid value for var."+name, held.Message)
		d.Extra = diagnose.FailedCondition{Of: e.Named("var." + name), Variable: true}
		if e.Parent != nil {
			d.Detail += fmt.Sprintf(" It is given by the call of the module (%s).", diagnose.Place(e.argumentRange(name, readOf(held.Expr, name))))
		}
		e.Add(d)
	}
}

// argumentRange is where a called module is given a variable, or would be: where the value stands to which the path leads, as far as that
// is written out.
func (e *Evaluator) argumentRange(name string, path []string) hcl.Range {
	if x := e.CallBlock().Attr(name); x != nil {
		if at := within(x.Expr, path); at != x.Expr.Range() {
			return at
		}
		return x.Range
	}
	return e.CallBlock().Range()
}

// read returns a value as it was given: a text as it is for strings, other
// single values and where no type is stated, as an expression for all else.
func (v *variable) read(g given) (cty.Value, error) {
	if g.expr != nil {
		val, diags := g.expr.Value(nil)
		if diags.HasErrors() {
			return cty.NilVal, errors.New("a variable file holds constants: no references and no functions")
		}
		return val, nil
	}
	if v.typ == cty.DynamicPseudoType || v.typ.IsPrimitiveType() {
		return cty.StringVal(g.text), nil // converted like any string
	}
	src := []byte(g.text)
	if diags := syntax.CheckExpression(src, "value"); diags.HasErrors() {
		return cty.NilVal, errors.New("it is nested too deeply")
	}
	expr, diags := hclsyntax.ParseExpression(src, "value", hcl.InitialPos)
	if diags.HasErrors() {
		return cty.NilVal, errors.New("it is no expression, such as [1, 2] or { a = \"b\" }; strings in it need quotes")
	}
	syntax.Adapt(expr)
	val, diags := expr.Value(nil)
	if diags.HasErrors() {
		return cty.NilVal, errors.New("it must be a constant; strings in it need quotes")
	}
	return val, nil
}

// misfit is why a value does not fit the type. For a secret it has neither where
// nor how: that would show keys and parts of it.
func (v *variable) misfit(err error, secret bool) string {
	if secret {
		return "its type is " + typeexpr.TypeString(v.typ)
	}
	return conversionError(err, v.typ)
}

// longestType is the length of a type beyond which an error does not show it as a whole.
const longestType = 400

// conversionError is where in a value a conversion to a type failed.
func conversionError(err error, typ cty.Type) string {
	of := ""
	if text := typeexpr.TypeString(typ); !typ.IsPrimitiveType() && len(text) <= longestType {
		of = "; the type is " + text
	}
	var path cty.PathError
	if !errors.As(err, &path) || len(path.Path) == 0 {
		return err.Error() + of
	}
	var where strings.Builder
	for _, step := range path.Path {
		switch step := step.(type) {
		case cty.GetAttrStep:
			where.WriteString("." + step.Name)
		case cty.IndexStep:
			if step.Key.Type() == cty.Number {
				where.WriteString("[" + step.Key.AsBigFloat().Text('f', 0) + "]")
			} else if step.Key.Type() == cty.String && step.Key.IsKnown() {
				fmt.Fprintf(&where, "[%q]", step.Key.AsString())
			}
		}
	}
	return fmt.Sprintf("at %s, %s%s", strings.TrimPrefix(where.String(), "."), path.Error(), of)
}

func variableSuggestion(name string, vars map[string]*variable) string {
	return diagnose.DidYouMean(name, slices.Collect(maps.Keys(vars)))
}
