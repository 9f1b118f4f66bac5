package schema

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
	"github.com/zclconf/go-cty/cty/convert"
)

// variable is a variable block, decoded.
type variable struct {
	block     *block
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
	from string         // in words, where a text came from; "": it was asked for
}

// evaluateVariables gives every variable of the root its value: the default, or
// what comes last of the environment, the variable files and the command line.
func (e *evaluator) evaluateVariables() {
	vars := make(map[string]*variable, len(e.decls.variables))
	for _, name := range e.decls.variableNames() {
		vars[name] = e.variable(e.decls.variables[name])
	}
	e.checkTest()
	values := e.givenValues(vars)
	for _, name := range e.decls.variableNames() {
		s := symbol{root: rootVar, name: name}
		var val cty.Value
		var ok bool
		if assigned, is := e.opts.Assigned[name]; is {
			val, ok = e.assign(name, vars[name], assigned)
		} else {
			g, isGiven := values[name]
			val, ok = e.finalValue(name, vars[name], g, isGiven)
		}
		if e.failed[s] || !ok {
			e.failed[s] = true
			val = cty.DynamicVal
		}
		e.variables[name] = val
	}
}

// variable decodes a variable block.
func (e *evaluator) variable(b *block) *variable {
	v := &variable{block: b, typ: cty.DynamicPseudoType, nullable: true}
	wrong := func() { e.failed[symbol{root: rootVar, name: b.name}] = true }
	if x := b.attr("type"); x != nil {
		typ, defaults, diags := typeexpr.TypeConstraintWithDefaults(x.expr)
		e.extend(typeHints(diags))
		if diags.HasErrors() {
			wrong()
		} else {
			v.typ, v.defaults = typ, defaults
		}
	}
	v.sensitive = e.constantBool(b.attr("sensitive"), false)
	v.nullable = e.constantBool(b.attr("nullable"), true)
	v.ephemeral = e.constantBool(b.attr("ephemeral"), false)
	v.description = e.constantString(b.attr("description"))
	if e.parent != nil && e.callBlock().typ.attr(b.name) != nil {
		e.errorAt(b.rng(), "Reserved name", fmt.Sprintf("A call of a module has %s itself: give the variable another name.", b.name))
		wrong()
	}
	if x := b.attr("default"); x != nil {
		val, ok := e.constant(x)
		if ok {
			converted, err := v.convert(val)
			if err != nil {
				e.errorAt(x.expr.Range(), "Invalid value for default", sentence(conversionError(err, v.typ)))
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

// constant evaluates an expression that may call functions, but not refer to
// anything.
func (e *evaluator) constant(x *expression) (cty.Value, bool) {
	if refs := x.expr.Variables(); len(refs) > 0 {
		e.errorAt(refs[0].SourceRange(), "Reference not allowed", fmt.Sprintf("%s is read before there are values to refer to: write a constant. A local can combine variables.", capitalized(x.name)))
		return cty.NilVal, false
	}
	val, diags := x.expr.Value(e.base)
	e.extend(diags)
	return val, !diags.HasErrors()
}

func (e *evaluator) constantBool(x *expression, def bool) bool {
	if x == nil {
		return def
	}
	val, ok := e.constant(x)
	if !ok || val.IsNull() {
		return def
	}
	val, _ = val.Unmark()
	b, err := asBool(val)
	if err != nil {
		e.wrongValue(x, evaluated{}, err)
		return def
	}
	return b
}

func (e *evaluator) constantString(x *expression) string {
	if x == nil {
		return ""
	}
	val, ok := e.constant(x)
	if !ok || val.IsNull() {
		return ""
	}
	val, _ = val.Unmark()
	s, err := asString(val)
	if err != nil {
		e.wrongValue(x, evaluated{}, err)
	}
	return s
}

// convert fits a value to the variable's type.
func (v *variable) convert(val cty.Value) (cty.Value, error) {
	if v.defaults != nil && !val.IsNull() {
		plain, marks := val.UnmarkDeepWithPaths()
		val = v.defaults.Apply(plain).MarkWithPaths(marks)
	}
	return convert.Convert(val, v.typ)
}

// finalValue chooses, converts and checks the value of a variable.
func (e *evaluator) finalValue(name string, v *variable, g given, isGiven bool) (cty.Value, bool) {
	if e.failed[symbol{root: rootVar, name: name}] {
		return cty.NilVal, false // its block is wrong, and told
	}
	if !isGiven && v.fallback == cty.NilVal && e.opts.Partial {
		e.partial = true
		return v.mark(cty.UnknownVal(v.typ)), true
	}
	if !isGiven && v.fallback == cty.NilVal {
		e.add(v.unset(name))
		return cty.NilVal, false
	}
	if !isGiven {
		return v.mark(v.fallback), true
	}
	val, err := v.read(g)
	if err != nil {
		e.wrongGiven(name, v, g, err.Error())
		return cty.NilVal, false
	}
	if val.IsNull() && !v.nullable && v.fallback != cty.NilVal {
		return v.mark(v.fallback), true
	}
	val, err = v.convert(val)
	switch {
	case err != nil:
		e.wrongGiven(name, v, g, v.misfit(err, v.sensitive || v.ephemeral))
		return cty.NilVal, false
	case val.IsNull() && !v.nullable:
		e.wrongGiven(name, v, g, "it must not be null")
		return cty.NilVal, false
	}
	return v.mark(val), true
}

func (v *variable) mark(val cty.Value) cty.Value {
	if v.sensitive {
		val = markSensitive(val)
	}
	if v.ephemeral {
		val = val.Mark(ephemeralMark{})
	}
	return val
}

// unset says that a variable must be given a value.
func (v *variable) unset(name string) *hcl.Diagnostic {
	d := errorAt(v.block.rng(), "Variable without a value", fmt.Sprintf(
		"%s has no default, so it must be given: --var '%s=…', %s%s=…, a line in %s, or a default here.", name, name, VariablePrefix, name, varFileName))
	d.Extra = Unset{Name: name, Type: typeexpr.TypeString(v.typ), Description: v.description, Sensitive: v.sensitive}
	return d
}

func (e *evaluator) wrongGiven(name string, v *variable, g given, why string) {
	if g.rng != nil && v.sensitive { // the line would show the value
		g.from, g.rng = place(*g.rng), nil
	}
	if g.rng != nil {
		e.invalidValue(*g.rng, name, sentence(why))
		return
	}
	detail := sentence(why)
	if g.from != "" {
		detail = fmt.Sprintf("The value from %s does not fit: %s.", g.from, why)
	}
	e.invalidValue(v.block.rng(), name, detail)
}

// invalidValue reports that a variable cannot have the value that it is given.
func (e *evaluator) invalidValue(rng hcl.Range, name, detail string) {
	d := errorAt(rng, "Invalid value for var."+name, detail)
	d.Extra = causeInvalidValue
	e.add(d)
}

// validate checks the validation blocks of a variable.
func (e *evaluator) validate(name string) {
	if e.failed[symbol{root: rootVar, name: name}] {
		return
	}
	b := e.decls.variables[name]
	for _, validation := range b.blocks["validation"] {
		held := e.holds(validation, nil)
		if held.status != ConditionFails {
			continue
		}
		d := valueError(held.rng, held.expr, held.ctx, "Invalid value for var."+name, held.message)
		d.Extra = FailedCondition{Of: e.named("var." + name), variable: true}
		if e.parent != nil {
			d.Detail += fmt.Sprintf(" It is given by the call of the module (%s).", place(e.argumentRange(name)))
		}
		e.add(d)
	}
}

// argumentRange is where a called module is given a variable, or would be.
func (e *evaluator) argumentRange(name string) hcl.Range {
	if x := e.callBlock().attr(name); x != nil {
		return x.rng
	}
	return e.callBlock().rng()
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
	if diags := checkExpressionNesting(src, "value"); diags.HasErrors() {
		return cty.NilVal, errors.New("it is nested too deeply")
	}
	expr, diags := hclsyntax.ParseExpression(src, "value", hcl.InitialPos)
	if diags.HasErrors() {
		return cty.NilVal, errors.New("it is no expression, such as [1, 2] or { a = \"b\" }; strings in it need quotes")
	}
	val, diags := expr.Value(nil)
	if diags.HasErrors() {
		return cty.NilVal, errors.New("it must be a constant; strings in it need quotes")
	}
	return val, nil
}

// misfit says why a value does not fit the type. Of a secret neither where nor
// how: keys and words of it would show.
func (v *variable) misfit(err error, secret bool) string {
	if secret {
		return "its type is " + typeexpr.TypeString(v.typ)
	}
	return conversionError(err, v.typ)
}

// conversionError says where in a value a conversion to a type failed.
func conversionError(err error, typ cty.Type) string {
	of := ""
	if !typ.IsPrimitiveType() {
		of = "; the type is " + typeexpr.TypeString(typ)
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
	return didYouMean(name, slices.Collect(maps.Keys(vars)))
}
