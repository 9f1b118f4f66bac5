package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// module is one call of a directory's files, or the root: what can be known of
// it without values. Its instances are evaluators.
type module struct {
	*report
	path     string // "module.a.module.b", without keys; "" for the root
	name     string
	parent   *module // nil for the root
	files    *moduleFiles
	decls    *declarations
	children map[string]*module

	instances []*evaluator // once expanded
}

// modules builds the tree of modules, parents before children.
func (s *session) modules() []*module {
	root := &module{report: s.report, files: s.source.root}
	all := []*module{root}
	for i := 0; i < len(all); i++ {
		m := all[i]
		typ := language()
		m.decls = s.declare(s.structure(m.files.bodies, typ, nil))
		m.children = map[string]*module{}
		if m.parent != nil {
			m.onlyOfRoot()
		}
		for _, name := range sortedKeys(m.decls.calls) {
			files := m.files.calls[name]
			if files == nil {
				continue // could not be read, and told
			}
			child := &module{report: s.report, path: joinModule(m.path, name, Key{}), name: name, parent: m, files: files}
			m.children[name] = child
			all = append(all, child)
		}
	}
	return all
}

// call is the block that calls the module, in its parent.
func (m *module) call() *block { return m.parent.decls.calls[m.name].block }

// onlyOfRoot reports what stands in a module and holds for the whole.
func (m *module) onlyOfRoot() {
	const summary = "Not in a module"
	if b := m.decls.fray; b != nil {
		for _, children := range b.blocks {
			m.errorAt(children[0].rng(), summary, "Where the state is and who may read it is said once, by the configuration that uses the module: of fray { }, a module has required_version only.")
		}
	}
	if b := m.decls.controller; b != nil {
		m.errorAt(b.rng(), summary, "The controller is declared once, by the configuration that uses the module.")
	}
	for _, name := range sortedKeys(m.decls.providers) {
		m.errorAt(m.decls.providers[name].rng(), summary, "Providers are declared by the configuration that uses the module, which hands them in: all of them, or those of providers = { … }.")
	}
	for _, imported := range m.decls.imports {
		m.errorAt(imported.rng(), summary, "What is imported is said by the configuration that uses the module: import { to = module.NAME.… }.")
	}
}

// clone copies declarations for one instance of their module: what was found of
// them without values is kept, values are to be found anew.
func (d *declarations) clone() *declarations {
	c := *d
	c.locals = make(map[string]*local, len(d.locals))
	for name, l := range d.locals {
		c.locals[name] = &local{name: name, x: l.x.anew()}
	}
	c.outputs = cloneBlocks(d.outputs)
	c.variables = cloneBlocks(d.variables)
	c.calls, c.data = cloneDeclarations(d.calls), cloneDeclarations(d.data)
	c.things = cloneDeclarations(d.things)
	for _, decl := range c.things {
		if decl.group != nil {
			decl.group = c.things[decl.group.addr]
		}
		for i, job := range decl.jobs {
			decl.jobs[i] = c.things[job.addr]
		}
	}
	c.checks = make([]*block, 0, len(d.checks))
	for _, b := range d.checks {
		c.checks = append(c.checks, b.clone())
	}
	return &c
}

func cloneBlocks(blocks map[string]*block) map[string]*block {
	c := make(map[string]*block, len(blocks))
	for name, b := range blocks {
		c[name] = b.clone()
	}
	return c
}

func cloneDeclarations[K comparable](decls map[K]*declaration) map[K]*declaration {
	c := make(map[K]*declaration, len(decls))
	for name, decl := range decls {
		copied := *decl
		copied.block, copied.instances, copied.jobs = decl.block.clone(), nil, slices.Clone(decl.jobs)
		c[name] = &copied
	}
	return c
}

func (b *block) clone() *block {
	c := *b
	c.attrs = maps.Clone(b.attrs)
	for name, x := range c.attrs {
		c.attrs[name] = x.anew()
	}
	c.blocks = maps.Clone(b.blocks)
	for name, children := range c.blocks {
		copies := make([]*block, 0, len(children))
		for _, child := range children {
			copies = append(copies, child.clone())
		}
		c.blocks[name] = copies
	}
	c.dynamics = nil
	for _, d := range b.dynamics {
		copied := *d
		copied.forEach, copied.content = d.forEach.anew(), d.content.clone()
		c.dynamics = append(c.dynamics, &copied)
	}
	return &c
}

// expandCall gives a module call its instances, for one instance of the module
// that it stands in.
func (e *evaluator) expandCall(name string) {
	call := e.decls.calls[name]
	child := e.mod.children[name]
	s := symbol{root: rootModule, name: name}
	if child == nil || !e.expand(call) {
		e.failed[s] = true
		return
	}
	depends := e.dependsOn(call.block)
	for _, i := range call.instances {
		inner := e.session.evaluator(child, e, i)
		inner.inherited = append(slices.Clone(e.inherited), depends...)
		inner.handed = e.handedProviders(call.block)
		e.children[name] = append(e.children[name], inner)
	}
}

// handedProviders reads the providers of a module call: what its blocks find
// under the name of a provider; nil if they find all as they are.
func (e *evaluator) handedProviders(b *block) map[ProviderName]ProviderName {
	x := b.attr("providers")
	if x == nil {
		return e.handed
	}
	pairs, diags := hcl.ExprMap(x.expr)
	if diags.HasErrors() {
		e.errorAt(x.expr.Range(), "Invalid value for providers", "Write a map such as { gcp = provider.local }.")
		return e.handed
	}
	handed := map[ProviderName]ProviderName{}
	for _, pair := range pairs {
		inside := ProviderName(hcl.ExprAsKeyword(pair.Key))
		traversal, diags := hcl.AbsTraversalForExpr(pair.Value)
		outside := ""
		if !diags.HasErrors() && traversal.RootName() == "provider" && len(traversal) == 2 {
			outside, _ = stepName(traversal, 1)
		}
		switch {
		case !isProvider(inside):
			e.errorAt(pair.Key.Range(), "Invalid value for providers", fmt.Sprintf("A module asks for a provider by the names %s.", strings.Join(providerNames(), " and ")))
		case !isProvider(ProviderName(outside)):
			e.errorAt(pair.Value.Range(), "Invalid value for providers", fmt.Sprintf("Write a provider without quotes, such as provider.%s.", strings.Join(providerNames(), " or provider.")))
		default:
			handed[inside] = e.handedOn(ProviderName(outside))
		}
	}
	return handed
}

// handedOn is the provider that a name stands for in this module.
func (e *evaluator) handedOn(name ProviderName) ProviderName {
	if to, ok := e.handed[name]; ok {
		return to
	}
	return name
}

func isProvider(name ProviderName) bool { return slices.Contains(providerNames(), string(name)) }

func providerNames() []string { return []string{string(ProviderLocal), string(ProviderGCP)} }
