package eval

import (
	"maps"
	"net"
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/mark"
	"github.com/fray-ml/fray/schema"
)

// putObject puts the value of a declared object where references find it.
func (e *Evaluator) putObject(tree valueTree, addr schema.Address) {
	val := e.Object(addr)
	if addr.Group != "" {
		tree.put(val, string(schema.KindJobGroup), addr.Group, string(schema.KindJob), addr.Name)
		return
	}
	tree.put(val, string(addr.Kind), addr.Name)
}

// Object returns the value of a reference to a whole declaration.
func (e *Evaluator) Object(addr schema.Address) cty.Value {
	if val, ok := e.Objects[addr]; ok {
		return val
	}
	decl := e.Decls.Addressed[addr]
	var val cty.Value
	switch addr.Kind {
	case schema.KindNamespace:
		val = cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(addr.Name), "addr": cty.StringVal(e.Global(addr).String())})
	case schema.KindReservation:
		val = cty.ObjectVal(map[string]cty.Value{
			"name": cty.StringVal(addr.Name), "addr": cty.StringVal(e.Global(addr).String()),
			"slices": knownList(e.Options.Computed[e.Global(addr)].Slices),
		})
	case schema.KindJobGroup:
		jobs := make(map[string]cty.Value, len(decl.Jobs))
		for _, job := range decl.Jobs {
			jobs[job.Addr.Name] = e.Object(job.Addr)
		}
		val = cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(addr.Name), "job": cty.ObjectVal(jobs)})
	case schema.KindJob:
		val = e.jobObject(decl)
	case schema.KindActorService:
		val = cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(addr.Name), "endpoints": e.endpoints(decl)})
	}
	e.Objects[addr] = val
	return val
}

// moduleObject returns the value of a reference to a module: an object of some of
// its outputs, nil for all, or of those for each instance.
func (e *Evaluator) moduleObject(name string, outputs map[string]bool) cty.Value {
	of := func(child *Evaluator) cty.Value {
		vals := map[string]cty.Value{}
		for output := range child.Decls.Outputs {
			if outputs == nil || outputs[output] {
				vals[output] = child.outputs[output]
			}
		}
		return cty.ObjectVal(vals)
	}
	children := e.Children[name]
	switch e.Decls.Calls[name].Repetition {
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

func (e *Evaluator) jobObject(decl *configs.Declaration) cty.Value {
	ports, portsKnown := e.declaredPorts(decl)
	pending := instanceObject(decl, schema.Computed{}, ports, portsKnown) // shared by all that are not there yet
	of := func(i configs.Instance) cty.Value {
		computed, ok := e.Options.Computed[e.Global(i.Addr(decl.Addr))]
		if !ok {
			return pending
		}
		return instanceObject(decl, computed, ports, portsKnown)
	}
	switch decl.Repetition {
	case configs.Single:
		return of(configs.Instance{})
	case configs.Counted:
		vals := make([]cty.Value, 0, len(decl.Instances))
		for _, i := range decl.Instances {
			vals = append(vals, of(i))
		}
		return sequence(vals, pending.Type())
	case configs.Keyed:
		vals := make(map[string]cty.Value, len(decl.Instances))
		for _, i := range decl.Instances {
			key, _ := i.Key.Str()
			vals[key] = of(i)
		}
		return mapping(vals, pending.Type())
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

// InstanceOf is the value of one instance of a job.
func (e *Evaluator) InstanceOf(decl *configs.Declaration, i configs.Instance) cty.Value {
	ports, known := e.declaredPorts(decl)
	return instanceObject(decl, e.Options.Computed[e.Global(i.Addr(decl.Addr))], ports, known)
}

func instanceObject(decl *configs.Declaration, c schema.Computed, ports []schema.Port, portsKnown bool) cty.Value {
	address := ""
	if len(c.Addresses) > 0 {
		address = c.Addresses[0]
	}
	return cty.ObjectVal(map[string]cty.Value{
		"id":        knownString(c.ID),
		"name":      cty.StringVal(decl.Addr.Name),
		"address":   knownString(address),
		"addresses": knownList(c.Addresses),
		"ports":     portsObject(c.Ports, ports, portsKnown),
		"slices":    knownList(c.Slices),
		"status":    knownString(string(c.Status)),
	})
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

// portsObject maps port names to numbers: computed ones, else fixed ones, else
// not known yet. Where the names differ from instance to instance they are not
// known either.
func portsObject(computed map[string]int, declared []schema.Port, declaredKnown bool) cty.Value {
	if !declaredKnown && len(computed) == 0 {
		return cty.UnknownVal(cty.Map(cty.Number)).RefineNotNull()
	}
	vals := make(map[string]cty.Value, len(declared))
	for _, p := range declared {
		vals[p.Name] = knownPort(computed[p.Name], p.Number)
	}
	for name, n := range computed {
		if vals[name] == cty.NilVal {
			vals[name] = knownPort(n, 0)
		}
	}
	return cty.ObjectVal(vals)
}

func knownPort(computed, fixed int) cty.Value {
	switch {
	case computed != 0:
		return cty.NumberIntVal(int64(computed))
	case fixed != 0:
		return cty.NumberIntVal(int64(fixed))
	}
	return cty.UnknownVal(cty.Number).RefineNotNull()
}

// declaredPorts returns the ports of a job in the order of the source, where
// they are the same for all instances. Mistakes in them are reported elsewhere.
func (e *Evaluator) declaredPorts(decl *configs.Declaration) ([]schema.Port, bool) {
	x := decl.Block.Child("resources").Attr("ports")
	if x == nil {
		return nil, true
	}
	if x.PerInstance || x.Broken {
		return nil, false
	}
	out := e.Eval(x, nil)
	if !out.OK || !out.Value.IsWhollyKnown() || mark.IsSensitive(out.Value) {
		return nil, false
	}
	ports, err := as.PortList(out.Value)
	return ports, err == nil
}

// endpoints is "address:port" of every replica, with the port of its actor or
// else the first declared port.
func (e *Evaluator) endpoints(decl *configs.Declaration) cty.Value {
	ports, known := e.declaredPorts(decl)
	if decl.HostsActor() {
		ports = schema.WithActorPort(ports)
	}
	if len(decl.Instances) == 0 || known && len(ports) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	vals := make([]cty.Value, 0, len(decl.Instances))
	for _, i := range decl.Instances {
		c := e.Options.Computed[e.Global(i.Addr(decl.Addr))]
		name, number := firstPort(ports, c.Ports)
		if n := c.Ports[name]; n != 0 {
			number = n
		}
		if len(c.Addresses) == 0 || number == 0 {
			vals = append(vals, knownString(""))
			continue
		}
		vals = append(vals, cty.StringVal(net.JoinHostPort(c.Addresses[0], strconv.Itoa(number))))
	}
	return cty.ListVal(vals)
}

// firstPort is the first declared port; where the declaration is not at hand,
// the first by name.
func firstPort(declared []schema.Port, computed map[string]int) (string, int) {
	if len(declared) > 0 {
		return declared[0].Name, declared[0].Number
	}
	if names := slices.Sorted(maps.Keys(computed)); len(names) > 0 {
		return slices.Min(names), 0
	}
	return "", 0
}
