package lang

import (
	"encoding"
	"reflect"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/mark"
	"github.com/fray-ml/fray/schema"
)

// SpecValues is what is desired as a value of the language: an object for each
// address, with the attributes that plans show. Secrets are sensitive.
func SpecValues(d *schema.Desired) cty.Value {
	specs := map[string]cty.Value{}
	for i := range d.Namespaces {
		specs[d.Namespaces[i].Addr.String()] = specValue(reflect.ValueOf(d.Namespaces[i]))
	}
	for i := range d.Reservations {
		specs[d.Reservations[i].Addr.String()] = specValue(reflect.ValueOf(d.Reservations[i]))
	}
	for i := range d.Groups {
		specs[d.Groups[i].Addr.String()] = specValue(reflect.ValueOf(d.Groups[i]))
	}
	for i := range d.Jobs {
		specs[d.Jobs[i].Addr.String()] = specValue(reflect.ValueOf(d.Jobs[i]))
	}
	for i := range d.Notifications {
		specs[d.Notifications[i].Addr.String()] = specValue(reflect.ValueOf(d.Notifications[i]))
	}
	return cty.ObjectVal(specs)
}

// SpecValue is one spec as a value of the language, as in [SpecValues].
func SpecValue(spec any) cty.Value { return specValue(reflect.ValueOf(spec)) }

// specValue converts part of a spec: structs become objects with the names of
// their JSON, pointers to nothing null.
func specValue(v reflect.Value) cty.Value {
	switch part := v.Interface().(type) {
	case schema.Text:
		return textValue(part)
	case encoding.TextMarshaler: // addresses, durations
		text, err := part.MarshalText()
		if err != nil {
			return cty.StringVal("")
		}
		return cty.StringVal(string(text))
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return cty.NullVal(cty.DynamicPseudoType)
		}
		return specValue(v.Elem())
	case reflect.String:
		return cty.StringVal(v.String())
	case reflect.Bool:
		return cty.BoolVal(v.Bool())
	case reflect.Int, reflect.Int64:
		return cty.NumberIntVal(v.Int())
	case reflect.Float64:
		return cty.NumberFloatVal(v.Float())
	case reflect.Slice:
		vals := make([]cty.Value, v.Len())
		for i := range vals {
			vals[i] = specValue(v.Index(i))
		}
		return cty.TupleVal(vals)
	case reflect.Map:
		vals := make(map[string]cty.Value, v.Len())
		for it := v.MapRange(); it.Next(); {
			vals[it.Key().String()] = specValue(it.Value())
		}
		return cty.ObjectVal(vals)
	case reflect.Struct:
		vals := map[string]cty.Value{}
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if name == "sensitive" {
				continue // Job.Sensitive, which no plan shows
			}
			vals[name] = specValue(v.Field(i))
		}
		return cty.ObjectVal(vals)
	}
	return cty.DynamicVal
}

// textValue is a text as a value of the language.
func textValue(t schema.Text) cty.Value {
	val := cty.UnknownVal(cty.String)
	if text, err := t.Reveal(nil); err == nil {
		val = cty.StringVal(text)
	}
	if t.IsSensitive() {
		val = val.Mark(mark.Sensitive{})
	}
	return val
}
