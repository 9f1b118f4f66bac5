package schema

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Reads knows which variables of the root the attributes of a configuration read,
// by the references that stand in the files. It is not for concurrent use.
type Reads struct {
	modules map[string]*module // by their paths, without keys
}

// Reads follows the references of the files. It evaluates nothing, so that it takes
// the time of the files' size, however many instances they make.
func (s *Source) Reads() *Reads {
	all := s.session(Options{Partial: true}, maxInstances)
	all.all = all.modules()
	r := &Reads{modules: map[string]*module{}}
	for _, m := range all.all {
		m.resolveAll() // what is wrong was reported by the evaluation
		r.modules[m.path] = m
	}
	return r
}

// Of returns the variables that an attribute reads, sorted: directly, through locals,
// arguments and outputs of modules, data blocks and what its block is repeated by. The
// path is that of a plan, such as environment.env.HOME.
func (r *Reads) Of(addr Address, path string) []string {
	m := r.modules[staticPath(addr.Module)]
	if m == nil {
		return nil
	}
	decl := m.decls.things[thing(addr).addr]
	if decl == nil {
		return nil
	}
	f := &following{root: r.modules[""], seen: map[node]bool{}, found: map[string]bool{}}
	f.attribute(m, decl, strings.Split(aliasOf(path), "."))
	return sortedKeys(f.found)
}

// staticPath is the path of a module without the keys of its instances.
func staticPath(module string) string {
	steps, err := addressSteps(module)
	if err != nil {
		return module // of no module
	}
	path := ""
	for _, step := range steps {
		path = joinModule(path, step.name, Key{})
	}
	return path
}

// aliasOf is the attribute of the files that a recorded attribute comes of.
func aliasOf(path string) string {
	if path == "environment.bundle" {
		return "environment.project"
	}
	return path
}

// following collects the variables of the root that expressions read.
type following struct {
	root  *module
	seen  map[node]bool
	found map[string]bool
}

// attribute follows an attribute of a declaration; where the declaration does not state
// it, the one of that name that it is taken over from.
func (f *following) attribute(m *module, decl *declaration, path []string) {
	if f.within(m, decl.block, decl.block, path) {
		return
	}
	if actor := decl.block.child(actorBlock); actor != nil { // its command is made of these
		f.block(m, decl.block, actor)
		f.expression(m, decl.block, decl.block.attr("args"))
		return
	}
	if decl.group != nil && f.within(m, decl.group.block, decl.group.block, path) {
		return
	}
	last := path[len(path)-1:]
	for _, provider := range f.root.decls.providers {
		f.within(f.root, provider, provider, last)
	}
}

// within follows an attribute of a block, and reports whether it stands there.
func (f *following) within(m *module, decl, b *block, path []string) bool {
	if x := b.attr(path[0]); x != nil {
		f.part(m, decl, x, path[1:])
		return true
	}
	found := false
	for _, child := range b.children(path[0]) {
		rest := path[1:]
		if child.name != "" {
			if len(rest) == 0 || rest[0] != child.name {
				continue
			}
			rest = rest[1:]
		}
		if len(rest) == 0 {
			f.block(m, decl, child)
			found = true
			continue
		}
		found = f.within(m, decl, child, rest) || found
	}
	for _, d := range b.dynamics {
		if d.typ.name != path[0] {
			continue
		}
		found = true
		f.expression(m, decl, d.forEach) // that there is such a block follows from it
		if len(path) > 1 {
			f.within(m, decl, d.content, path[1:])
		} else {
			f.block(m, decl, d.content)
		}
	}
	return found
}

func (f *following) block(m *module, decl, b *block) {
	b.walk(func(x *expression) { f.expression(m, decl, x) })
}

// part follows what makes one entry of a map, where the files write it out.
func (f *following) part(m *module, decl *block, x *expression, path []string) {
	object, ok := x.expr.(*hclsyntax.ObjectConsExpr)
	if !ok || len(path) == 0 {
		f.expression(m, decl, x)
		return
	}
	key := strings.Join(path, ".")
	for _, item := range object.Items {
		name, diags := item.KeyExpr.Value(nil)
		if diags.HasErrors() || !isPlainString(name) {
			f.expression(m, decl, x) // which entry it is is known to an evaluation only
			return
		}
		if name.AsString() == key {
			f.references(m, decl, x, item.ValueExpr.Range())
		}
	}
}

func (f *following) expression(m *module, decl *block, x *expression) {
	if x != nil {
		f.references(m, decl, x, hcl.Range{})
	}
}

// references follows the references of an expression that stand within a range; in
// all of it if that is zero.
func (f *following) references(m *module, decl *block, x *expression, within hcl.Range) {
	for _, ref := range x.refs {
		if within.Empty() || within.Start.Byte <= ref.rng.Start.Byte && ref.rng.End.Byte <= within.End.Byte {
			f.symbol(m, decl, ref.symbol)
		}
	}
}

// symbol follows what the value of a symbol comes from, where it stands in decl.
func (f *following) symbol(m *module, decl *block, s symbol) {
	switch s.root {
	case rootCount, rootEach:
		addShape(decl, func(x *expression) { f.expression(m, decl, x) })
		return
	case rootPath, rootFray, rootSelf, rootOutput, rootValidation:
		return
	case rootVar, rootLocal, rootModule, rootData, rootThing:
	}
	at := node{m, s}
	if f.seen[at] {
		return
	}
	f.seen[at] = true
	switch s.root {
	case rootVar:
		if m.parent == nil {
			f.found[s.name] = true
			return
		}
		f.expression(m.parent, m.call(), m.call().attr(s.name))
	case rootLocal:
		f.expression(m, nil, m.decls.locals[s.name].x)
	case rootModule:
		f.module(m, s)
	case rootData:
		b := m.decls.data[s.name].block
		f.block(m, b, b)
	case rootThing:
		b := m.decls.things[s.addr].block
		for _, x := range m.shapeOf(s) {
			f.expression(m, b, x)
		}
	case rootCount, rootEach, rootPath, rootFray, rootSelf, rootOutput, rootValidation:
	}
}

// module follows an output of a called module, all of them where none is named.
func (f *following) module(m *module, s symbol) {
	call := m.decls.calls[s.name].block
	addShape(call, func(x *expression) { f.expression(m, call, x) })
	child := m.children[s.name]
	if child == nil {
		return
	}
	for _, name := range sortedKeys(child.decls.outputs) {
		if s.output == "" || s.output == name {
			f.expression(child, nil, child.decls.outputs[name].attr("value"))
		}
	}
}

// variableValues are the values of the root's variables by their names, each a secret
// text of its name and value, for digests. Left out are those that are ephemeral and
// those that are not known.
func (e *evaluator) variableValues() map[string]Text {
	values := map[string]Text{}
	for name, val := range e.variables {
		if isEphemeral(val) {
			continue
		}
		val, _ = val.UnmarkDeep()
		if !val.IsWhollyKnown() {
			continue
		}
		data, err := ctyjson.Marshal(val, cty.DynamicPseudoType)
		if err == nil {
			values[name] = Secret(name + "\x00" + string(data))
		}
	}
	return values
}

// Changed are those of the attribute's variables that are among some.
func (r *Reads) Changed(addr Address, path string, among []string) []string {
	return slices.DeleteFunc(r.Of(addr, path), func(name string) bool { return !slices.Contains(among, name) })
}
