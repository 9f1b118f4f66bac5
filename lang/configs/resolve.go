package configs

import (
	"maps"
	"slices"

	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/schema"
)

// ResolveAll finds the references of every expression of a module, unless it is canceled.
func (m *Module) ResolveAll() {
	plain := func(x *Expression) { m.Resolve(x, Allowed{}) }
	for _, name := range slices.Sorted(maps.Keys(m.Decls.Locals)) {
		if m.Canceled() {
			return
		}
		plain(m.Decls.Locals[name].Expression)
	}
	m.Decls.Fray.Walk(plain)
	m.Decls.Controller.Walk(plain)
	for _, b := range m.Decls.Providers {
		b.Walk(plain)
	}
	for _, b := range m.Decls.Imports {
		b.Walk(plain)
	}
	for _, some := range []map[string]*Block{m.Decls.Variables, m.Decls.Outputs} {
		for _, name := range slices.Sorted(maps.Keys(some)) {
			if m.Canceled() {
				return
			}
			some[name].Walk(plain)
		}
	}
	for _, b := range m.Decls.Checks {
		for _, assert := range b.Blocks["assert"] {
			assert.Walk(func(x *Expression) { m.Resolve(x, Allowed{check: b.Name}) })
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Decls.Calls)) {
		m.resolveRepeated(m.Decls.Calls[name])
	}
	for _, name := range slices.Sorted(maps.Keys(m.Decls.Data)) {
		m.resolveRepeated(m.Decls.Data[name])
	}
	for _, decl := range m.Decls.Sorted(schema.Kinds()...) {
		if m.Canceled() {
			return
		}
		if decl.Addr.Kind == schema.KindJobGroup {
			for _, name := range slices.Sorted(maps.Keys(decl.Block.Attrs)) {
				plain(decl.Block.Attrs[name])
			}
			continue // its jobs are declarations of their own
		}
		m.resolveRepeated(decl)
	}
}

// resolveRepeated resolves the expressions that may differ between instances.
func (m *Module) resolveRepeated(decl *Declaration) {
	may := Allowed{count: decl.Repetition == Counted, each: decl.Repetition == Keyed, check: decl.Check}
	decl.Block.Walk(func(x *Expression) {
		if x.Mode == language.ModeShape {
			m.Resolve(x, Allowed{check: decl.Check})
			return
		}
		m.Resolve(x, may)
	})
}
