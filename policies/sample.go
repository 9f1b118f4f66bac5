package policies

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/policy"
	"github.com/fray-ml/fray/schema"
)

// sampleInput has one of each of what a plan has several of.
func sampleInput() policy.Input {
	in := policy.Input{Changes: []policy.Change{{Change: plan.Change{Verb: plan.VerbNone, Attrs: []*plan.AttrChange{{}}}}}}
	in.After = schema.Desired{
		Providers: []schema.Provider{{}}, Namespaces: []schema.Namespace{{}}, Reservations: []schema.Reservation{{}},
		Groups: []schema.JobGroup{{}}, Jobs: []schema.Job{{}},
	}
	return in
}

// Sample is a plan of which nothing is known but which parts it has: what rules that are
// only checked are given.
func Sample() cty.Value { return unknown(Value(sampleInput())) }

// unknown is a value whose parts are not known. An object without members takes any name,
// and a null anything.
func unknown(v cty.Value) cty.Value {
	ty := v.Type()
	switch {
	case v.IsMarked() || v.IsNull() || ty.HasDynamicTypes() && !v.IsKnown():
		return cty.DynamicVal
	case ty.IsObjectType() && len(ty.AttributeTypes()) > 0:
		parts := map[string]cty.Value{}
		for name, part := range v.AsValueMap() {
			parts[name] = unknown(part)
		}
		return cty.ObjectVal(parts)
	case ty.IsTupleType() && v.LengthInt() > 0:
		var items []cty.Value
		for _, item := range v.AsValueSlice() {
			items = append(items, unknown(item))
		}
		return cty.TupleVal(items)
	case ty.IsObjectType() || ty.IsTupleType():
		return cty.DynamicVal
	}
	return cty.UnknownVal(ty)
}
