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

// job is a declared job or service with what is known of its instances.
type job struct {
	decl       *configs.Declaration
	ports      []schema.Port // in the order of the source
	portsKnown bool          // they are the same for all instances
	computed   func(configs.Instance) (schema.Computed, bool)
}

func (e *Evaluator) jobOf(decl *configs.Declaration) job {
	ports, known := e.declaredPorts(decl)
	return job{decl: decl, ports: ports, portsKnown: known, computed: func(i configs.Instance) (schema.Computed, bool) {
		c, ok := e.Options.Computed[e.Global(i.Addr(decl.Addr))]
		return c, ok
	}}
}

// InstanceOf is the value of one instance of a job.
func (e *Evaluator) InstanceOf(decl *configs.Declaration, i configs.Instance) cty.Value {
	j := e.jobOf(decl)
	computed, _ := j.computed(i)
	return j.instance(computed)
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

// value is the value of a reference to the whole job.
func (j job) value() cty.Value {
	pending := j.instance(schema.Computed{}) // shared by all that are not there yet
	of := func(i configs.Instance) cty.Value {
		computed, ok := j.computed(i)
		if !ok {
			return pending
		}
		return j.instance(computed)
	}
	switch j.decl.Repetition {
	case configs.Single:
		return of(configs.Instance{})
	case configs.Counted:
		vals := make([]cty.Value, 0, len(j.decl.Instances))
		for _, i := range j.decl.Instances {
			vals = append(vals, of(i))
		}
		return sequence(vals, pending.Type())
	case configs.Keyed:
		vals := make(map[string]cty.Value, len(j.decl.Instances))
		for _, i := range j.decl.Instances {
			key, _ := i.Key.Str()
			vals[key] = of(i)
		}
		return mapping(vals, pending.Type())
	}
	return cty.DynamicVal
}

// instance is the value of an instance of which something is known.
func (j job) instance(c schema.Computed) cty.Value {
	address := ""
	if len(c.Addresses) > 0 {
		address = c.Addresses[0]
	}
	return cty.ObjectVal(map[string]cty.Value{
		"id":        knownString(c.ID),
		"name":      cty.StringVal(j.decl.Addr.Name),
		"address":   knownString(address),
		"addresses": knownList(c.Addresses),
		"ports":     portsObject(c.Ports, j.ports, j.portsKnown),
		"slices":    knownList(c.Slices),
		"status":    knownString(string(c.Status)),
	})
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

// endpoints is "address:port" of every replica, with the port of its actor or
// else the first declared port.
func (j job) endpoints() cty.Value {
	ports := j.ports
	if j.decl.HostsActor() {
		ports = schema.WithActorPort(ports)
	}
	if len(j.decl.Instances) == 0 || j.portsKnown && len(ports) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	vals := make([]cty.Value, 0, len(j.decl.Instances))
	for _, i := range j.decl.Instances {
		c, _ := j.computed(i)
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
