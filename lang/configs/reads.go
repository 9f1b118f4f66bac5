package configs

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/schema"
)

// Reads knows which variables of the root the attributes of a configuration read,
// by the references that stand in the files. It is not for concurrent use.
type Reads struct {
	modules map[string]*Module // by their paths, without keys
}

// ReadsOf follows the references of the files. It evaluates nothing, so that it takes
// the time of the files' size, however many instances they make.
func ReadsOf(s *load.Source) *Reads {
	r := &Reads{modules: map[string]*Module{}}
	for _, m := range Modules(s.Root, diagnose.New()) {
		m.ResolveAll() // what is wrong was reported by the evaluation
		r.modules[m.Path] = m
	}
	return r
}

// Of returns the variables that an attribute reads, sorted: directly, through locals,
// arguments and outputs of modules, data blocks and what its block is repeated by. The
// path is that of a plan, such as environment.env.HOME.
func (r *Reads) Of(addr schema.Address, path string) []string {
	m := r.modules[addr.StaticModule()]
	if m == nil {
		return nil
	}
	decl := m.Decls.Addressed[SymbolOf(addr).Addr]
	if decl == nil {
		return nil
	}
	f := &following{root: r.modules[""], seen: map[Node]bool{}, found: map[string]bool{}}
	f.attribute(m, decl, strings.Split(aliasOf(path), "."))
	return slices.Sorted(maps.Keys(f.found))
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
	root  *Module
	seen  map[Node]bool
	found map[string]bool
}

// attribute follows an attribute of a declaration; where the declaration does not state
// it, the one of that name that it is taken over from.
func (f *following) attribute(m *Module, decl *Declaration, path []string) {
	if f.within(m, decl.Block, decl.Block, path) {
		return
	}
	if actor := decl.Block.Child(language.ActorBlock); actor != nil { // its command is made of these
		f.block(m, decl.Block, actor)
		f.expression(m, decl.Block, decl.Block.Attr("args"))
		return
	}
	if decl.Group != nil && f.within(m, decl.Group.Block, decl.Group.Block, path) {
		return
	}
	last := path[len(path)-1:]
	for _, provider := range f.root.Decls.Providers {
		f.within(f.root, provider, provider, last)
	}
}

// within follows an attribute of a block, and reports whether it stands there.
func (f *following) within(m *Module, decl, b *Block, path []string) bool {
	if x := b.Attr(path[0]); x != nil {
		f.part(m, decl, x, path[1:])
		return true
	}
	found := false
	for _, child := range b.Children(path[0]) {
		rest := path[1:]
		if child.Name != "" {
			if len(rest) == 0 || rest[0] != child.Name {
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
	for _, d := range b.Dynamics {
		if d.Type.Name != path[0] {
			continue
		}
		found = true
		f.expression(m, decl, d.ForEach) // that there is such a block follows from it
		if len(path) > 1 {
			f.within(m, decl, d.Content, path[1:])
		} else {
			f.block(m, decl, d.Content)
		}
	}
	return found
}

func (f *following) block(m *Module, decl, b *Block) {
	b.Walk(func(x *Expression) { f.expression(m, decl, x) })
}

// part follows what makes one entry of a map, where the files write it out.
func (f *following) part(m *Module, decl *Block, x *Expression, path []string) {
	object, ok := x.Expr.(*hclsyntax.ObjectConsExpr)
	if !ok || len(path) == 0 {
		f.expression(m, decl, x)
		return
	}
	key := strings.Join(path, ".")
	for _, item := range object.Items {
		name, diags := item.KeyExpr.Value(nil)
		if diags.HasErrors() || !as.IsPlainString(name) {
			f.expression(m, decl, x) // which entry it is is known to an evaluation only
			return
		}
		if name.AsString() == key {
			f.references(m, decl, x, item.ValueExpr.Range())
		}
	}
}

func (f *following) expression(m *Module, decl *Block, x *Expression) {
	if x != nil {
		f.references(m, decl, x, hcl.Range{})
	}
}

// references follows the references of an expression that stand within a range; in
// all of it if that is zero.
func (f *following) references(m *Module, decl *Block, x *Expression, within hcl.Range) {
	for _, ref := range x.Refs {
		if within.Empty() || within.Start.Byte <= ref.Range.Start.Byte && ref.Range.End.Byte <= within.End.Byte {
			f.symbol(m, decl, ref.Symbol)
		}
	}
}

// symbol follows what the value of a symbol comes from, where it stands in decl.
func (f *following) symbol(m *Module, decl *Block, s Symbol) {
	switch s.Root {
	case RootCount, RootEach:
		addShape(decl, func(x *Expression) { f.expression(m, decl, x) })
		return
	case RootPath, RootFray, RootSelf, RootOutput, RootValidation:
		return
	case RootVar, RootLocal, RootModule, RootData, RootAddressed:
	}
	at := Node{m, s}
	if f.seen[at] {
		return
	}
	f.seen[at] = true
	switch s.Root {
	case RootVar:
		if m.parent == nil {
			f.found[s.Name] = true
			return
		}
		f.expression(m.parent, m.Call(), m.Call().Attr(s.Name))
	case RootLocal:
		f.expression(m, nil, m.Decls.Locals[s.Name].Expression)
	case RootModule:
		f.module(m, s)
	case RootData:
		b := m.Decls.Data[s.Name].Block
		f.block(m, b, b)
	case RootAddressed:
		b := m.Decls.Addressed[s.Addr].Block
		for _, x := range m.shapeOf(s) {
			f.expression(m, b, x)
		}
	case RootCount, RootEach, RootPath, RootFray, RootSelf, RootOutput, RootValidation:
	}
}

// module follows an output of a called module, all of them where none is named.
func (f *following) module(m *Module, s Symbol) {
	call := m.Decls.Calls[s.Name].Block
	addShape(call, func(x *Expression) { f.expression(m, call, x) })
	child := m.Children[s.Name]
	if child == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(child.Decls.Outputs)) {
		if s.Output == "" || s.Output == name {
			f.expression(child, nil, child.Decls.Outputs[name].Attr("value"))
		}
	}
}

// Changed are those of the attribute's variables that are among some.
func (r *Reads) Changed(addr schema.Address, path string, among []string) []string {
	return slices.DeleteFunc(r.Of(addr, path), func(name string) bool { return !slices.Contains(among, name) })
}
