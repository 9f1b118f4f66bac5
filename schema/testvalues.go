package schema

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Assigned is a value of a variable from what tests the configuration. It goes
// over all others.
type Assigned struct {
	Value cty.Value
	Range hcl.Range
}

// Override is what data blocks read instead of what there is.
type Override struct {
	Value    cty.Value
	Range    hcl.Range
	target   hcl.Range
	optional bool // there may be no such data
}

// Values evaluates what a run gives to a configuration: its variables, over
// those of the file, and what its data blocks read. runs has the outputs of
// earlier runs.
func (f *TestFile) Values(run *TestRun, of *Source, runs map[string]cty.Value) (Options, hcl.Diagnostics) {
	r := newReport()
	ctx := &hcl.EvalContext{Functions: functions(of.dir), Variables: map[string]cty.Value{"run": cty.ObjectVal(runs)}}
	opts := Options{Assigned: map[string]Assigned{}, Overrides: map[string]Override{}}
	declared := of.variableNames()
	shared := map[string]cty.Value{}
	f.variables.walk(func(x *expression) {
		val, ok := r.constantIn(x, ctx)
		if !ok {
			return
		}
		shared[x.name] = val
		if run.Module == "" || slices.Contains(declared, x.name) { // else it is for other runs
			opts.Assigned[x.name] = Assigned{Value: val, Range: x.expr.Range()}
		}
	})
	ctx.Variables["var"] = cty.ObjectVal(shared)
	run.variables.walk(func(x *expression) {
		if val, ok := r.constantIn(x, ctx); ok {
			opts.Assigned[x.name] = Assigned{Value: val, Range: x.expr.Range()}
		}
	})
	reader := &testReader{report: r, source: f.source}
	for _, b := range slices.Concat(f.overrides, run.overrides) {
		target, x := b.attr("target"), b.attr("values")
		if target == nil || x == nil {
			continue
		}
		name, _ := reader.written(target.expr)
		if val, ok := r.constantIn(x, ctx); ok {
			shared := run.Module != "" && slices.Contains(f.overrides, b)
			opts.Overrides[name] = Override{Value: val, Range: x.expr.Range(), target: target.expr.Range(), optional: shared}
		}
	}
	return opts, r.sorted()
}

// constantIn evaluates an expression of a test file.
func (r *report) constantIn(x *expression, ctx *hcl.EvalContext) (cty.Value, bool) {
	val, diags := x.expr.Value(ctx)
	r.extend(redact(diags, x, ctx))
	return val, !diags.HasErrors()
}

// variableNames lists the variables of the root module.
func (s *Source) variableNames() []string {
	names := map[string]bool{}
	for _, body := range s.root.bodies {
		for _, b := range body.Blocks {
			if b.Type == "variable" && len(b.Labels) == 1 {
				names[b.Labels[0]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// assign gives a variable the value that was assigned.
func (e *evaluator) assign(name string, v *variable, a Assigned) (cty.Value, bool) {
	if e.failed[symbol{root: rootVar, name: name}] {
		return cty.NilVal, false // its block is wrong, and told
	}
	g := given{rng: &a.Range}
	if a.Value.IsNull() && !v.nullable && v.fallback != cty.NilVal {
		return v.mark(v.fallback), true
	}
	val, err := v.convert(a.Value)
	switch {
	case err != nil:
		e.wrongGiven(name, v, g, conversionError(err, v.typ))
		return cty.NilVal, false
	case val.IsNull() && !v.nullable:
		e.wrongGiven(name, v, g, "it must not be null")
		return cty.NilVal, false
	}
	return v.mark(val), true
}

// checkTest reports values that no variable takes, and data that there is not.
func (e *evaluator) checkTest() {
	for _, name := range sortedKeys(e.opts.Assigned) {
		if e.decls.variables[name] == nil {
			e.errorAt(e.opts.Assigned[name].Range, "Undeclared variable",
				fmt.Sprintf("The configuration has no variable %q. %s", name, didYouMean(name, e.decls.variableNames())))
		}
	}
	var data []string
	for _, m := range e.session.all {
		for name := range m.decls.data {
			data = append(data, joinName(m.path, "data."+name))
		}
	}
	for _, name := range sortedKeys(e.opts.Overrides) {
		if o := e.opts.Overrides[name]; !o.optional && !slices.Contains(data, name) {
			e.errorAt(o.target, "Reference to nothing", fmt.Sprintf("There is no %s to override. %s", name, didYouMean(name, data)))
		}
	}
}

func joinName(module, name string) string {
	if module == "" {
		return name
	}
	return module + "." + name
}

// override is what a data block reads in a test, if it is not to read.
func (e *evaluator) override(decl *declaration) (Override, bool) {
	o, ok := e.opts.Overrides[joinName(e.mod.path, "data."+decl.block.typ.variant+"."+decl.block.name)]
	return o, ok
}

// overridden is the value of data that is overridden: attributes that are not
// given are empty.
func (e *evaluator) overridden(kind DataKind, o Override) (cty.Value, bool) {
	wrong := func(why string) (cty.Value, bool) {
		e.errorAt(o.Range, "Invalid value for values", sentence(why))
		return cty.NilVal, false
	}
	if ty := o.Value.Type(); !ty.IsObjectType() && !ty.IsMapType() || o.Value.IsNull() || !o.Value.IsKnown() || o.Value.IsMarked() {
		return wrong("want a map such as { queue = \"none\" }, this is " + friendly(o.Value))
	}
	given := o.Value.AsValueMap()
	if kind == DataOutputs {
		return cty.ObjectVal(map[string]cty.Value{"values": cty.ObjectVal(given)}), true
	}
	ty := acceleratorsType()
	if kind == DataReservation {
		ty = reservationDataType()
	}
	vals := map[string]cty.Value{}
	for name, want := range ty.AttributeTypes() {
		vals[name] = emptyOf(want)
	}
	for _, name := range sortedKeys(given) {
		if !ty.HasAttribute(name) {
			return wrong(fmt.Sprintf("data %q has no attribute %q. %s", kind, name, didYouMean(name, dataAttributes(kind))))
		}
		val, err := convert.Convert(given[name], ty.AttributeType(name))
		if err != nil {
			return wrong(name + ": " + conversionError(err, ty.AttributeType(name)))
		}
		vals[name] = val
	}
	return cty.ObjectVal(vals), true
}

// emptyOf is the value of a type that says nothing.
func emptyOf(ty cty.Type) cty.Value {
	switch {
	case ty == cty.String:
		return cty.StringVal("")
	case ty == cty.Number:
		return cty.Zero
	case ty == cty.Bool:
		return cty.False
	case ty.IsListType():
		return cty.ListValEmpty(ty.ElementType())
	}
	return cty.NullVal(ty)
}
