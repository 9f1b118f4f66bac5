package configs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/schema"
)

// Root is the closed set of what a reference can start with.
type Root string

// The roots.
const (
	RootVar        Root = "var"
	RootLocal      Root = "local"
	RootPath       Root = "path"
	RootCount      Root = "count"
	RootEach       Root = "each"
	RootData       Root = "data"
	RootModule     Root = "module"
	RootFray       Root = "fray"
	RootSelf       Root = "self"
	RootOutput     Root = "output"     // not written: what a module's caller sees
	RootValidation Root = "validation" // not written: of a variable
	RootAddressed  Root = ""           // anything with an address: its Kind is written
)

// Symbol is what a reference names: something that has a value.
type Symbol struct {
	Root   Root
	Name   string         // of a variable, local, output or module; KIND.NAME of data
	Output string         // of a module; "" for all of them, or for its instances
	Addr   schema.Address // of a declaration, without a key and a module
}

func (s Symbol) String() string {
	switch {
	case s.Root == RootAddressed:
		return s.Addr.String()
	case s.Output != "":
		return string(s.Root) + "." + s.Name + "." + s.Output
	case s.Root == RootValidation:
		return "the validation of var." + s.Name
	}
	return string(s.Root) + "." + s.Name
}

// SymbolOf is the symbol of an address, without its key and module.
func SymbolOf(addr schema.Address) Symbol {
	addr = addr.Base()
	addr.Module = ""
	return Symbol{Root: RootAddressed, Addr: addr}
}

// Reference is one place where a symbol is named.
type Reference struct {
	Symbol Symbol
	Addr   schema.Address // of a declaration, with the key if one instance is named
	Key    schema.Key     // of a module, if one instance is named
	Range  hcl.Range
}

// Allowed has the references to an instance that an expression may use, and the
// context of its check.
type Allowed struct {
	count, each, self bool
	check             string // the check that it stands in
}

// Resolve finds what an expression refers to and reports what is not there.
func (m *Module) Resolve(x *Expression, may Allowed) {
	if x == nil || x.Mode == language.ModeRaw || x.Mode == language.ModeConstant {
		return
	}
	may.self = may.self || x.Mode == language.ModeSelf
	x.Momentary = calls(x.Expr, momentaryCalls())
	x.Repeated = may.count || may.each
	if x.Momentary && x.Repeated && calls(x.Expr, randomCalls()) {
		x.PerInstance = true
	}
	for _, traversal := range References(x.Expr) {
		if slices.Contains(x.Iterators, traversal.RootName()) {
			continue
		}
		ref, d := m.reference(traversal, may)
		if d != nil {
			m.Add(d)
			x.Broken = true
			continue
		}
		switch ref.Symbol.Root {
		case RootCount, RootEach, RootSelf:
			x.PerInstance = true
		case RootVar, RootLocal, RootPath, RootAddressed, RootData, RootModule, RootFray, RootOutput, RootValidation:
		}
		x.Refs = append(x.Refs, ref)
	}
}

// reference reads a traversal such as var.a, job.b[0].id or job_group.g.job.c.
func (m *Module) reference(t hcl.Traversal, may Allowed) (Reference, *hcl.Diagnostic) {
	rng := t.SourceRange()
	root := t.RootName()
	switch Root(root) {
	case RootVar:
		return m.named(t, RootVar, m.Decls.Variables[nameOf(t)] != nil, m.Decls.VariableNames)
	case RootLocal:
		return m.named(t, RootLocal, m.Decls.Locals[nameOf(t)] != nil, func() []string { return slices.Sorted(maps.Keys(m.Decls.Locals)) })
	case RootPath:
		ref, d := m.oneOfNames(t, RootPath, "module", "root", "cwd")
		ref.Symbol.Name = ""
		return ref, d
	case RootCount:
		if !may.count {
			return Reference{}, diagnose.ErrorAt(rng, "Reference not allowed", "count.index stands only in a job that has count, and in an actor_service, where it is the replica's number.")
		}
		return m.oneOfNames(t, RootCount, "index")
	case RootEach:
		if !may.each {
			return Reference{}, diagnose.ErrorAt(rng, "Reference not allowed", "each.key and each.value stand only in a job that has for_each.")
		}
		return m.oneOfNames(t, RootEach, "key", "value")
	case RootSelf:
		if !may.self {
			return Reference{}, diagnose.ErrorAt(rng, "Reference not allowed", "self is allowed only in a postcondition, where it refers to the object that has the condition.")
		}
		return Reference{Symbol: Symbol{Root: RootSelf}, Range: rng}, nil
	case RootFray:
		return m.oneOfNames(t, RootFray, "workspace")
	case RootData:
		return m.dataReference(t, may)
	case RootModule:
		return m.moduleReference(t)
	case RootAddressed, RootOutput, RootValidation:
	}
	if slices.Contains(schema.Kinds(), schema.Kind(root)) {
		return m.AddressedReference(t)
	}
	return Reference{}, diagnose.ErrorAt(rng, "Unknown name", m.unknownRoot(t))
}

// unknownRoot suggests roots for a name that no reference starts with.
func (m *Module) unknownRoot(t hcl.Traversal) string {
	root := t.RootName()
	detail := fmt.Sprintf("There is nothing named %q. ", root)
	_, isLocal := m.Decls.Locals[root]
	_, isVariable := m.Decls.Variables[root]
	switch {
	case isVariable:
		return detail + fmt.Sprintf("For the variable, write var.%s.", root)
	case isLocal:
		return detail + fmt.Sprintf("For the local value, write local.%s.", root)
	case root == "terraform":
		return detail + "For the workspace, write fray.workspace."
	case len(t) == 1:
		return detail + fmt.Sprintf("For a text, put it in quotes: %q.", root)
	}
	roots := []string{"var", "local", "path", "count", "each", "data", "module", "fray"}
	for _, k := range schema.Kinds() {
		roots = append(roots, string(k))
	}
	if near := schema.Nearest(root, roots); near != "" {
		return detail + fmt.Sprintf("Did you mean %q?", near)
	}
	return detail + "A reference starts with " + strings.Join(roots, ", ") + "."
}

// StepName is the name that a step of a traversal selects.
func StepName(t hcl.Traversal, i int) (string, bool) {
	if i >= len(t) {
		return "", false
	}
	switch step := t[i].(type) {
	case hcl.TraverseAttr:
		return step.Name, true
	case hcl.TraverseIndex:
		if step.Key.Type() == cty.String && step.Key.IsKnown() && !step.Key.IsNull() {
			return step.Key.AsString(), true
		}
	}
	return "", false
}

// nameOf is NAME of ROOT.NAME, "" if there is none.
func nameOf(t hcl.Traversal) string {
	name, _ := StepName(t, 1)
	return name
}

// oneOfNames reads ROOT.NAME where there are few names.
func (m *Module) oneOfNames(t hcl.Traversal, root Root, names ...string) (Reference, *hcl.Diagnostic) {
	return m.named(t, root, slices.Contains(names, nameOf(t)), func() []string { return names })
}

// named reads ROOT.NAME, where it is known whether there is such a name; names
// lists those that there are, for the message if not.
func (m *Module) named(t hcl.Traversal, root Root, known bool, names func() []string) (Reference, *hcl.Diagnostic) {
	rng := t.SourceRange()
	name, ok := StepName(t, 1)
	if !ok {
		return Reference{}, diagnose.ErrorAt(rng, "Incomplete reference", fmt.Sprintf("Write %s.NAME. %s", root, diagnose.DidYouMean("", names())))
	}
	if !known {
		names := names()
		what := map[Root]string{RootVar: "variable", RootLocal: "local value"}[root]
		if what == "" {
			return Reference{}, diagnose.ErrorAt(rng, "Unknown name", fmt.Sprintf("There is no %s.%s. %s", root, name, diagnose.DidYouMean(name, names)))
		}
		return Reference{}, diagnose.ErrorAt(rng, "Reference to nothing", fmt.Sprintf("There is no %s %q. %s", what, name, diagnose.DidYouMean(name, names)))
	}
	return Reference{Symbol: Symbol{Root: root, Name: name}, Range: rng}, nil
}

// AddressedReference reads a reference to something that has an address.
func (m *Module) AddressedReference(t hcl.Traversal) (Reference, *hcl.Diagnostic) {
	rng := t.SourceRange()
	kind := schema.Kind(t.RootName())
	name, ok := StepName(t, 1)
	if !ok {
		return Reference{}, diagnose.ErrorAt(rng, "Incomplete reference", fmt.Sprintf("Write %s.NAME. %s", kind, listed(schema.Address{Kind: kind}, m.Decls.names(kind, ""))))
	}
	addr := schema.Address{Kind: kind, Name: name}
	rest := 2
	if kind == schema.KindJobGroup && m.Decls.Addressed[addr] != nil {
		if step, ok := StepName(t, 2); ok && slices.Contains(schema.GroupMembers(), schema.Kind(step)) {
			if member, ok := StepName(t, 3); ok {
				addr = schema.Address{Kind: schema.Kind(step), Group: name, Name: member}
				rest = 4
			}
		}
	}
	decl := m.Decls.Addressed[addr]
	if decl == nil {
		return Reference{}, diagnose.ErrorAt(rng, "Reference to nothing", m.Decls.Dangling(addr))
	}
	ref := Reference{Symbol: SymbolOf(addr), Addr: addr, Range: rng}
	key, after, d := instanceKey(decl, t, rest)
	if d != nil {
		return Reference{}, d
	}
	ref.Addr.Key = key
	if attr, _ := StepName(t, after); attr == "endpoints" && decl.Block.Child("resources").Attr("ports") == nil && !decl.HostsActor() {
		m.Add(&hcl.Diagnostic{
			Severity: hcl.DiagWarning, Subject: &rng, Summary: "No endpoints",
			Detail: fmt.Sprintf("%s has no port to be reached at, so its list of endpoints is empty. Add ports = [\"rpc\"] to its resources.", addr),
		})
	}
	if attr, ok := StepName(t, after); ok && (after > rest || decl.Indexed() == Single) {
		if names := decl.Attributes(); !slices.Contains(names, attr) {
			return Reference{}, diagnose.ErrorAt(rng, "Unknown attribute", fmt.Sprintf("%s has no attribute %q. %s", ref.Addr, attr, diagnose.DidYouMean(attr, names)))
		}
	}
	return ref, nil
}

// instanceKey reads the key of an instance at step i, and returns where the
// steps after it begin.
func instanceKey(decl *Declaration, t hcl.Traversal, i int) (schema.Key, int, *hcl.Diagnostic) {
	if i >= len(t) {
		return schema.Key{}, i, nil
	}
	rng := t.SourceRange()
	index, isIndex := t[i].(hcl.TraverseIndex)
	switch decl.Indexed() {
	case Single:
		if isIndex && index.Key.Type() == cty.Number {
			return schema.Key{}, i, diagnose.ErrorAt(rng, "No instances", fmt.Sprintf("%s has a single instance: leave out the index.", decl.Addr))
		}
		return schema.Key{}, i, nil
	case Counted:
		if name, ok := t[i].(hcl.TraverseAttr); ok {
			return schema.Key{}, i, diagnose.ErrorAt(rng, "Instance missing", fmt.Sprintf(
				"%s has count: write %s[0].%s for one instance, %s[*].%s for all.", decl.Addr, decl.Addr, name.Name, decl.Addr, name.Name))
		}
		if isIndex && index.Key.Type() == cty.Number {
			n, _ := index.Key.AsBigFloat().Int64()
			return schema.IntKey(int(n)), i + 1, nil
		}
	case Keyed:
		if name, ok := StepName(t, i); ok {
			return schema.StringKey(name), i + 1, nil
		}
	}
	return schema.Key{}, i, nil
}

// dataReference reads data.KIND.NAME.
func (m *Module) dataReference(t hcl.Traversal, may Allowed) (Reference, *hcl.Diagnostic) {
	rng := t.SourceRange()
	kind := nameOf(t)
	name, _ := StepName(t, 2)
	var names []string
	for other, decl := range m.Decls.Data {
		if decl.Check == "" || decl.Check == may.check {
			names = append(names, "data."+other)
		}
	}
	decl := m.Decls.Data[kind+"."+name]
	switch {
	case kind == "" || name == "":
		return Reference{}, diagnose.ErrorAt(rng, "Incomplete reference", "Write data.KIND.NAME. "+diagnose.DidYouMean("", names))
	case decl == nil:
		return Reference{}, diagnose.ErrorAt(rng, "Reference to nothing", fmt.Sprintf("There is no data.%s.%s. %s", kind, name, diagnose.DidYouMean("data."+kind+"."+name, names)))
	case decl.Check != "" && decl.Check != may.check:
		return Reference{}, diagnose.ErrorAt(rng, "Reference to nothing", fmt.Sprintf("data.%s.%s is read for check.%s alone. Move the block out of the check.", kind, name, decl.Check))
	}
	_, after, d := instanceKey(decl, t, 3)
	if d != nil {
		return Reference{}, d
	}
	if attr, ok := StepName(t, after); ok && (after > 3 || decl.Repetition == Single) {
		if names := DataAttributes(language.DataKind(kind)); !slices.Contains(names, attr) {
			return Reference{}, diagnose.ErrorAt(rng, "Unknown attribute", fmt.Sprintf("data.%s.%s has no attribute %q. %s", kind, name, attr, diagnose.DidYouMean(attr, names)))
		}
	}
	return Reference{Symbol: Symbol{Root: RootData, Name: kind + "." + name}, Range: rng}, nil
}

// moduleReference reads module.NAME, with a key for one of many, and an output.
func (m *Module) moduleReference(t hcl.Traversal) (Reference, *hcl.Diagnostic) {
	rng := t.SourceRange()
	name := nameOf(t)
	call := m.Decls.Calls[name]
	if call == nil {
		names := slices.Sorted(maps.Keys(m.Decls.Calls))
		return Reference{}, diagnose.ErrorAt(rng, "Reference to nothing", fmt.Sprintf("There is no module %q. %s", name, diagnose.DidYouMean(name, names)))
	}
	ref := Reference{Symbol: Symbol{Root: RootModule, Name: name}, Range: rng}
	key, after, d := instanceKey(call, t, 2)
	if d != nil {
		return Reference{}, d
	}
	ref.Key = key
	output, ok := StepName(t, after)
	if !ok || after == 2 && call.Repetition != Single {
		return ref, nil
	}
	child := m.Children[name]
	if child == nil {
		return ref, nil // could not be read, and is reported
	}
	if child.Decls.Outputs[output] == nil {
		return Reference{}, diagnose.ErrorAt(rng, "Reference to nothing", fmt.Sprintf("module.%s has no output %q. %s", name, output, diagnose.DidYouMean(output, slices.Sorted(maps.Keys(child.Decls.Outputs)))))
	}
	ref.Symbol.Output = output
	return ref, nil
}
