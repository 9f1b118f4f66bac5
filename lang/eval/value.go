package eval

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/schema"
)

// Object returns the value of a reference to a whole declaration.
func (e *Evaluator) Object(addr schema.Address) cty.Value {
	if val, ok := e.Objects[addr]; ok {
		return val
	}
	decl := e.Decls.Addressed[addr]
	var val cty.Value
	switch addr.Kind {
	case schema.KindNamespace, schema.KindNotification:
		val = cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(addr.Name), "addr": cty.StringVal(e.Global(addr).String())})
	case schema.KindReservation:
		val = cty.ObjectVal(map[string]cty.Value{
			"name": cty.StringVal(addr.Name), "addr": cty.StringVal(e.Global(addr).String()),
			"slices": knownList(e.Options.Computed[e.Global(addr)].Slices),
		})
	case schema.KindJobGroup:
		val = e.groupObject(decl)
	case schema.KindJob:
		val = e.jobOf(decl).value()
	case schema.KindActorService:
		val = cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(addr.Name), "endpoints": e.jobOf(decl).endpoints()})
	}
	e.Objects[addr] = val
	return val
}

// groupObject has the members of a job group by kind and name.
func (e *Evaluator) groupObject(decl *configs.Declaration) cty.Value {
	members := map[schema.Kind]map[string]cty.Value{}
	for _, kind := range schema.GroupMembers() {
		members[kind] = map[string]cty.Value{}
	}
	for _, member := range decl.Members {
		members[member.Addr.Kind][member.Addr.Name] = e.Object(member.Addr)
	}
	val := map[string]cty.Value{"name": cty.StringVal(decl.Addr.Name)}
	for kind, byName := range members {
		val[string(kind)] = cty.ObjectVal(byName)
	}
	return cty.ObjectVal(val)
}

// moduleObject is the value of a reference to the instances of a module: an object of
// some of its outputs, nil for all, or of those for each instance.
func moduleObject(repeated configs.Repetition, children []*Evaluator, outputs map[string]bool) cty.Value {
	of := func(child *Evaluator) cty.Value {
		vals := map[string]cty.Value{}
		for output := range child.Decls.Outputs {
			if outputs == nil || outputs[output] {
				vals[output] = child.outputs[output]
			}
		}
		return cty.ObjectVal(vals)
	}
	switch repeated {
	case configs.Single:
		if len(children) == 1 {
			return of(children[0])
		}
	case configs.Counted:
		vals := make([]cty.Value, 0, len(children))
		for _, child := range children {
			vals = append(vals, of(child))
		}
		return cty.TupleVal(vals)
	case configs.Keyed:
		vals := make(map[string]cty.Value, len(children))
		for _, child := range children {
			key, _ := child.at.Key.Str()
			vals[key] = of(child)
		}
		return cty.ObjectVal(vals)
	}
	return cty.DynamicVal
}

// sequence is a list where all values have one type, as they have unless the
// names of ports differ, and a tuple otherwise. Converting a tuple takes
// quadratic time, which functions do to their arguments.
func sequence(vals []cty.Value, typ cty.Type) cty.Value {
	for _, v := range vals {
		if !v.Type().Equals(typ) {
			return cty.TupleVal(vals)
		}
	}
	if len(vals) == 0 {
		return cty.ListValEmpty(typ)
	}
	return cty.ListVal(vals)
}

// mapping is sequence for a map, or an object.
func mapping(vals map[string]cty.Value, typ cty.Type) cty.Value {
	for _, v := range vals {
		if !v.Type().Equals(typ) {
			return cty.ObjectVal(vals)
		}
	}
	if len(vals) == 0 {
		return cty.MapValEmpty(typ)
	}
	return cty.MapVal(vals)
}

func knownString(s string) cty.Value {
	if s == "" {
		return cty.UnknownVal(cty.String).RefineNotNull()
	}
	return cty.StringVal(s)
}

func knownList(items []string) cty.Value {
	if len(items) == 0 {
		return cty.UnknownVal(cty.List(cty.String)).RefineNotNull()
	}
	vals := make([]cty.Value, 0, len(items))
	for _, s := range items {
		vals = append(vals, knownString(s))
	}
	return cty.ListVal(vals)
}
