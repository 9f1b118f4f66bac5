package eval

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/language"
)

// assigned converts and checks the value that was assigned.
func (v *variable) assigned(a Assigned) (cty.Value, *hcl.Diagnostic) {
	g := given{rng: &a.Range}
	if a.Value.IsNull() && !v.nullable && v.fallback != cty.NilVal {
		return v.mark(v.fallback), nil
	}
	val, err := v.convert(a.Value)
	switch {
	case err != nil:
		return cty.NilVal, v.wrongGiven(g, conversionError(err, v.typ))
	case val.IsNull() && !v.nullable:
		return cty.NilVal, v.wrongGiven(g, "it must not be null")
	}
	return v.mark(val), nil
}

// checkTest reports values that no variable takes, and data that there is not.
func (s *Session) checkTest() {
	decls := s.Root().Decls
	for _, name := range slices.Sorted(maps.Keys(s.Options.Assigned)) {
		if decls.Variables[name] == nil {
			s.ErrorAt(s.Options.Assigned[name].Range, "Undeclared variable",
				fmt.Sprintf("The configuration has no variable %q. %s", name, diagnose.DidYouMean(name, decls.VariableNames())))
		}
	}
	var data []string
	for _, m := range s.Modules {
		for name := range m.Decls.Data {
			data = append(data, joinName(m.Path, "data."+name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Options.Overrides)) {
		if o := s.Options.Overrides[name]; !o.Optional && !slices.Contains(data, name) {
			s.ErrorAt(o.Target, "Reference to nothing", fmt.Sprintf("There is no %s to override. %s", name, diagnose.DidYouMean(name, data)))
		}
	}
}

func joinName(module, name string) string {
	if module == "" {
		return name
	}
	return module + "." + name
}

// overrideName is how tests name a data block of a module.
func overrideName(m *configs.Module, b *configs.Block) string {
	return joinName(m.Path, "data."+b.Type.Variant+"."+b.Name)
}

// value is the value of data that is overridden: attributes that are not given are
// empty.
func (o Override) value(r Reporter, kind language.DataKind) (cty.Value, bool) {
	wrong := func(why string) (cty.Value, bool) {
		r.ErrorAt(o.Range, "Invalid value for values", diagnose.Sentence(why))
		return cty.NilVal, false
	}
	if ty := o.Value.Type(); !ty.IsObjectType() && !ty.IsMapType() || o.Value.IsNull() || !o.Value.IsKnown() || o.Value.IsMarked() {
		return wrong("want a map such as { queue = \"none\" }, this is " + diagnose.Friendly(o.Value))
	}
	given := o.Value.AsValueMap()
	if kind == language.DataOutputs {
		return cty.ObjectVal(map[string]cty.Value{"values": cty.ObjectVal(given)}), true
	}
	ty := configs.AcceleratorsType()
	if kind == language.DataReservation {
		ty = configs.ReservationDataType()
	}
	vals := map[string]cty.Value{}
	for name, want := range ty.AttributeTypes() {
		vals[name] = emptyOf(want)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !ty.HasAttribute(name) {
			return wrong(fmt.Sprintf("data %q has no attribute %q. %s", kind, name, diagnose.DidYouMean(name, configs.DataAttributes(kind))))
		}
		val, err := convert.Convert(given[name], ty.AttributeType(name))
		if err != nil {
			return wrong(name + ": " + conversionError(err, ty.AttributeType(name)))
		}
		vals[name] = val
	}
	return cty.ObjectVal(vals), true
}

// emptyOf is the empty value of a type.
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
