package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// rootName is the closed set of what a reference can start with.
type rootName string

const (
	rootVar        rootName = "var"
	rootLocal      rootName = "local"
	rootPath       rootName = "path"
	rootCount      rootName = "count"
	rootEach       rootName = "each"
	rootData       rootName = "data"
	rootModule     rootName = "module"
	rootFray       rootName = "fray"
	rootSelf       rootName = "self"
	rootOutput     rootName = "output"     // not written: what a module's caller sees
	rootValidation rootName = "validation" // not written: of a variable
	rootThing      rootName = ""           // anything with an address: its Kind is written
)

// symbol is what a reference names: something that has a value.
type symbol struct {
	root   rootName
	name   string  // of a variable, local, output or module; KIND.NAME of data
	output string  // of a module; "" for all of them, or for its instances
	addr   Address // of a thing, without a key and a module
}

func (s symbol) String() string {
	switch {
	case s.root == rootThing:
		return s.addr.String()
	case s.output != "":
		return string(s.root) + "." + s.name + "." + s.output
	case s.root == rootValidation:
		return "the validation of var." + s.name
	}
	return string(s.root) + "." + s.name
}

func thing(addr Address) symbol {
	addr = addr.Base()
	addr.Module = ""
	return symbol{root: rootThing, addr: addr}
}

// reference is one place where a symbol is named.
type reference struct {
	symbol symbol
	addr   Address // of a thing, with the key if one instance is named
	key    Key     // of a module, if one instance is named
	rng    hcl.Range
}

// allowed says which references to an instance an expression may have, and what
// else is there for it alone.
type allowed struct {
	count, each, self bool
	check             string // the check that it stands in
}

// resolve finds what an expression refers to and reports what is not there.
func (m *module) resolve(x *expression, may allowed) {
	if x == nil || x.mode == modeRaw || x.mode == modeConstant {
		return
	}
	may.self = may.self || x.mode == modeSelf
	for _, traversal := range x.expr.Variables() {
		if slices.Contains(x.iterators, traversal.RootName()) {
			continue
		}
		ref, d := m.reference(traversal, may)
		if d != nil {
			m.add(d)
			x.broken = true
			continue
		}
		switch ref.symbol.root {
		case rootCount, rootEach, rootSelf:
			x.perInstance = true
		case rootVar, rootLocal, rootPath, rootThing, rootData, rootModule, rootFray, rootOutput, rootValidation:
		}
		x.refs = append(x.refs, ref)
	}
}

// reference reads a traversal such as var.a, job.b[0].id or job_group.g.job.c.
func (m *module) reference(t hcl.Traversal, may allowed) (reference, *hcl.Diagnostic) {
	rng := t.SourceRange()
	root := t.RootName()
	switch rootName(root) {
	case rootVar:
		return m.named(t, rootVar, m.decls.variables[nameOf(t)] != nil, m.decls.variableNames)
	case rootLocal:
		return m.named(t, rootLocal, m.decls.locals[nameOf(t)] != nil, func() []string { return sortedKeys(m.decls.locals) })
	case rootPath:
		ref, d := m.oneOfNames(t, rootPath, "module", "root", "cwd")
		ref.symbol.name = ""
		return ref, d
	case rootCount:
		if !may.count {
			return reference{}, errorAt(rng, "Reference not allowed", "count.index stands only in a job that has count, and in an actor_service, where it is the replica's number.")
		}
		return m.oneOfNames(t, rootCount, "index")
	case rootEach:
		if !may.each {
			return reference{}, errorAt(rng, "Reference not allowed", "each.key and each.value stand only in a job that has for_each.")
		}
		return m.oneOfNames(t, rootEach, "key", "value")
	case rootSelf:
		if !may.self {
			return reference{}, errorAt(rng, "Reference not allowed", "self stands only in a postcondition, where it is the thing that the condition is of.")
		}
		return reference{symbol: symbol{root: rootSelf}, rng: rng}, nil
	case rootFray:
		return m.oneOfNames(t, rootFray, "workspace")
	case rootData:
		return m.dataReference(t, may)
	case rootModule:
		return m.moduleReference(t)
	case rootThing, rootOutput, rootValidation:
	}
	if slices.Contains(Kinds(), Kind(root)) {
		return m.thingReference(t)
	}
	return reference{}, errorAt(rng, "Unknown name", m.unknownRoot(t))
}

// unknownRoot says what may have been meant by a name that nothing starts with.
func (m *module) unknownRoot(t hcl.Traversal) string {
	root := t.RootName()
	detail := fmt.Sprintf("There is nothing named %q. ", root)
	_, isLocal := m.decls.locals[root]
	_, isVariable := m.decls.variables[root]
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
	for _, k := range Kinds() {
		roots = append(roots, string(k))
	}
	if near := Nearest(root, roots); near != "" {
		return detail + fmt.Sprintf("Did you mean %q?", near)
	}
	return detail + "A reference starts with " + strings.Join(roots, ", ") + "."
}

// stepName is the name that a step of a traversal selects.
func stepName(t hcl.Traversal, i int) (string, bool) {
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
	name, _ := stepName(t, 1)
	return name
}

// oneOfNames reads ROOT.NAME where there are few names.
func (m *module) oneOfNames(t hcl.Traversal, root rootName, names ...string) (reference, *hcl.Diagnostic) {
	return m.named(t, root, slices.Contains(names, nameOf(t)), func() []string { return names })
}

// named reads ROOT.NAME, where it is known whether there is such a name; names
// lists those that there are, for the message if not.
func (m *module) named(t hcl.Traversal, root rootName, known bool, names func() []string) (reference, *hcl.Diagnostic) {
	rng := t.SourceRange()
	name, ok := stepName(t, 1)
	if !ok {
		return reference{}, errorAt(rng, "Incomplete reference", fmt.Sprintf("Write %s.NAME. %s", root, didYouMean("", names())))
	}
	if !known {
		names := names()
		what := map[rootName]string{rootVar: "variable", rootLocal: "local value"}[root]
		if what == "" {
			return reference{}, errorAt(rng, "Unknown name", fmt.Sprintf("There is no %s.%s. %s", root, name, didYouMean(name, names)))
		}
		return reference{}, errorAt(rng, "Reference to nothing", fmt.Sprintf("There is no %s %q. %s", what, name, didYouMean(name, names)))
	}
	return reference{symbol: symbol{root: root, name: name}, rng: rng}, nil
}

// thingReference reads a reference to something that has an address.
func (m *module) thingReference(t hcl.Traversal) (reference, *hcl.Diagnostic) {
	rng := t.SourceRange()
	kind := Kind(t.RootName())
	name, ok := stepName(t, 1)
	if !ok {
		return reference{}, errorAt(rng, "Incomplete reference", fmt.Sprintf("Write %s.NAME. %s", kind, listed(Address{Kind: kind}, m.decls.names(kind, ""))))
	}
	addr := Address{Kind: kind, Name: name}
	rest := 2
	if kind == KindJobGroup && m.decls.things[addr] != nil {
		if step, ok := stepName(t, 2); ok && step == string(KindJob) {
			if job, ok := stepName(t, 3); ok {
				addr = Address{Kind: KindJob, Group: name, Name: job}
				rest = 4
			}
		}
	}
	decl := m.decls.things[addr]
	if decl == nil {
		return reference{}, errorAt(rng, "Reference to nothing", m.decls.dangling(addr))
	}
	ref := reference{symbol: thing(addr), addr: addr, rng: rng}
	key, after, d := instanceKey(decl, t, rest)
	if d != nil {
		return reference{}, d
	}
	ref.addr.Key = key
	if attr, _ := stepName(t, after); attr == "endpoints" && decl.block.child("resources").attr("ports") == nil && !decl.hostsActor() {
		m.add(&hcl.Diagnostic{
			Severity: hcl.DiagWarning, Subject: &rng, Summary: "No endpoints",
			Detail: fmt.Sprintf("%s has no port to be reached at, so its list of endpoints is empty. Add ports = [\"rpc\"] to its resources.", addr),
		})
	}
	if attr, ok := stepName(t, after); ok && (after > rest || decl.indexed() == single) {
		if names := decl.attributes(); !slices.Contains(names, attr) {
			return reference{}, errorAt(rng, "Unknown attribute", fmt.Sprintf("%s has no attribute %q. %s", ref.addr, attr, didYouMean(attr, names)))
		}
	}
	return ref, nil
}

// instanceKey reads the key of an instance at step i, and returns where the
// steps after it begin.
func instanceKey(decl *declaration, t hcl.Traversal, i int) (Key, int, *hcl.Diagnostic) {
	if i >= len(t) {
		return Key{}, i, nil
	}
	rng := t.SourceRange()
	index, isIndex := t[i].(hcl.TraverseIndex)
	switch decl.indexed() {
	case single:
		if isIndex && index.Key.Type() == cty.Number {
			return Key{}, i, errorAt(rng, "No instances", fmt.Sprintf("%s is one thing to refer to: leave out the index.", decl.addr))
		}
		return Key{}, i, nil
	case counted:
		if name, ok := t[i].(hcl.TraverseAttr); ok {
			return Key{}, i, errorAt(rng, "Instance missing", fmt.Sprintf(
				"%s has count: write %s[0].%s for one instance, %s[*].%s for all.", decl.addr, decl.addr, name.Name, decl.addr, name.Name))
		}
		if isIndex && index.Key.Type() == cty.Number {
			n, _ := index.Key.AsBigFloat().Int64()
			return IntKey(int(n)), i + 1, nil
		}
	case keyed:
		if name, ok := stepName(t, i); ok {
			return StringKey(name), i + 1, nil
		}
	}
	return Key{}, i, nil
}

// dataReference reads data.KIND.NAME.
func (m *module) dataReference(t hcl.Traversal, may allowed) (reference, *hcl.Diagnostic) {
	rng := t.SourceRange()
	kind := nameOf(t)
	name, _ := stepName(t, 2)
	var names []string
	for other, decl := range m.decls.data {
		if decl.check == "" || decl.check == may.check {
			names = append(names, "data."+other)
		}
	}
	decl := m.decls.data[kind+"."+name]
	switch {
	case kind == "" || name == "":
		return reference{}, errorAt(rng, "Incomplete reference", "Write data.KIND.NAME. "+didYouMean("", names))
	case decl == nil:
		return reference{}, errorAt(rng, "Reference to nothing", fmt.Sprintf("There is no data.%s.%s. %s", kind, name, didYouMean("data."+kind+"."+name, names)))
	case decl.check != "" && decl.check != may.check:
		return reference{}, errorAt(rng, "Reference to nothing", fmt.Sprintf("data.%s.%s is read for check.%s alone. Move the block out of the check.", kind, name, decl.check))
	}
	_, after, d := instanceKey(decl, t, 3)
	if d != nil {
		return reference{}, d
	}
	if attr, ok := stepName(t, after); ok && (after > 3 || decl.repetition == single) {
		if names := dataAttributes(DataKind(kind)); !slices.Contains(names, attr) {
			return reference{}, errorAt(rng, "Unknown attribute", fmt.Sprintf("data.%s.%s has no attribute %q. %s", kind, name, attr, didYouMean(attr, names)))
		}
	}
	return reference{symbol: symbol{root: rootData, name: kind + "." + name}, rng: rng}, nil
}

// moduleReference reads module.NAME, with a key for one of many, and an output.
func (m *module) moduleReference(t hcl.Traversal) (reference, *hcl.Diagnostic) {
	rng := t.SourceRange()
	name := nameOf(t)
	call := m.decls.calls[name]
	if call == nil {
		names := sortedKeys(m.decls.calls)
		return reference{}, errorAt(rng, "Reference to nothing", fmt.Sprintf("There is no module %q. %s", name, didYouMean(name, names)))
	}
	ref := reference{symbol: symbol{root: rootModule, name: name}, rng: rng}
	key, after, d := instanceKey(call, t, 2)
	if d != nil {
		return reference{}, d
	}
	ref.key = key
	output, ok := stepName(t, after)
	if !ok || after == 2 && call.repetition != single {
		return ref, nil
	}
	child := m.children[name]
	if child == nil {
		return ref, nil // could not be read, and told
	}
	if child.decls.outputs[output] == nil {
		return reference{}, errorAt(rng, "Reference to nothing", fmt.Sprintf("module.%s has no output %q. %s", name, output, didYouMean(output, sortedKeys(child.decls.outputs))))
	}
	ref.symbol.output = output
	return ref, nil
}
