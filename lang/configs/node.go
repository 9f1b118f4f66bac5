package configs

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/schema"
)

// Node is a symbol of a module, with one value for each instance of it.
type Node struct {
	Module *Module
	Symbol Symbol
}

func (n Node) String() string {
	if n.Module.Path == "" {
		return n.Symbol.String()
	}
	return n.Module.Path + "." + n.Symbol.String()
}

// AllNodes returns what is given a value before the declarations are decoded.
func AllNodes(all []*Module) []Node {
	var nodes []Node
	for _, m := range all {
		add := func(root Root, names []string) {
			for _, name := range names {
				nodes = append(nodes, Node{m, Symbol{Root: root, Name: name}})
			}
		}
		if m.parent != nil {
			add(RootVar, m.Decls.VariableNames())
			add(RootOutput, slices.Sorted(maps.Keys(m.Decls.Outputs)))
		}
		for _, name := range m.Decls.VariableNames() {
			if len(m.Decls.Variables[name].Blocks["validation"]) > 0 {
				add(RootValidation, []string{name})
			}
		}
		add(RootLocal, slices.Sorted(maps.Keys(m.Decls.Locals)))
		add(RootModule, slices.Sorted(maps.Keys(m.Decls.Calls)))
		add(RootData, slices.Sorted(maps.Keys(m.Decls.Data)))
		for _, decl := range m.Decls.Sorted(schema.KindJob, schema.KindActorService) {
			nodes = append(nodes, Node{m, SymbolOf(decl.Addr)})
		}
	}
	return nodes
}

// Edges are the nodes that must have a value before n can have one: for a local
// its references, for a job what its instances are counted by.
func (n Node) Edges() []Node {
	var edges []Node
	for _, x := range n.Module.shapeOf(n.Symbol) {
		edges = append(edges, n.Module.needs(x)...)
	}
	for _, ref := range n.Module.stated(n.Symbol) {
		edges = append(edges, n.Module.nodesOf(ref.Symbol)...)
	}
	switch n.Symbol.Root {
	case RootAddressed:
		for _, job := range n.Module.Decls.Addressed[n.Symbol.Addr].Members {
			edges = append(edges, Node{n.Module, SymbolOf(job.Addr)})
		}
	case RootVar:
		if parent := n.Module.parent; parent != nil {
			if x := n.Module.Call().Attr(n.Symbol.Name); x != nil {
				edges = append(edges, parent.needs(x)...)
			}
		}
	case RootValidation:
		edges = append(edges, n.Module.nodesOf(Symbol{Root: RootVar, Name: n.Symbol.Name})...)
	case RootData:
		if language.DataKind(n.Module.Decls.Data[n.Symbol.Name].Block.Type.Variant) == language.DataAccelerators {
			edges = append(edges, n.Module.offered()...)
		}
	case RootLocal, RootOutput, RootModule, RootPath, RootCount, RootEach, RootFray, RootSelf:
	}
	if n.Module.parent != nil {
		edges = append(edges, Node{n.Module.parent, Symbol{Root: RootModule, Name: n.Module.Name}})
	}
	return edges
}

// offered are the nodes that the offers of the root's provider blocks refer to.
func (m *Module) offered() []Node {
	for m.parent != nil {
		m = m.parent
	}
	var nodes []Node
	for _, offer := range m.Decls.Providers[schema.ProviderGCP].Children("offer") {
		offer.Walk(func(x *Expression) { nodes = append(nodes, m.needs(x)...) })
	}
	return nodes
}

// needs are the nodes that an expression refers to.
func (m *Module) needs(x *Expression) []Node {
	var nodes []Node
	for _, ref := range x.Refs {
		nodes = append(nodes, m.nodesOf(ref.Symbol)...)
	}
	return nodes
}

// nodesOf are the nodes that have the value of a symbol that is referred to.
func (m *Module) nodesOf(s Symbol) []Node {
	switch s.Root {
	case RootVar:
		if m.parent == nil {
			return nil // has its value already
		}
	case RootModule:
		nodes := []Node{{m, Symbol{Root: RootModule, Name: s.Name}}}
		child := m.Children[s.Name]
		if child == nil {
			return nodes
		}
		for _, name := range slices.Sorted(maps.Keys(child.Decls.Outputs)) {
			if s.Output == "" || s.Output == name {
				nodes = append(nodes, Node{child, Symbol{Root: RootOutput, Name: name}})
			}
		}
		return nodes
	case RootPath, RootCount, RootEach, RootFray, RootSelf:
		return nil
	case RootAddressed:
		if !Runs(s.Addr.Kind) {
			return nil
		}
	case RootLocal, RootData, RootOutput, RootValidation:
	}
	return []Node{{m, s}}
}

// shapeOf returns the expressions that the value of a symbol is made from.
func (m *Module) shapeOf(s Symbol) []*Expression {
	var shape []*Expression
	add := func(x *Expression) { shape = append(shape, x) }
	switch s.Root {
	case RootLocal:
		add(m.Decls.Locals[s.Name].Expression)
	case RootOutput:
		m.Decls.Outputs[s.Name].Walk(add)
	case RootData:
		m.Decls.Data[s.Name].Block.Walk(add)
	case RootModule:
		addShape(m.Decls.Calls[s.Name].Block, add)
	case RootValidation:
		for _, b := range m.Decls.Variables[s.Name].Blocks["validation"] {
			b.Walk(add)
		}
	case RootAddressed:
		decl := m.Decls.Addressed[s.Addr]
		addShape(decl.Block, add)
		if x := decl.Block.Child("resources").Attr("ports"); x != nil && !x.PerInstance {
			add(x)
		}
	case RootVar, RootPath, RootCount, RootEach, RootFray, RootSelf:
	}
	return shape
}

// addShape adds what the instances of a block are counted by.
func addShape(b *Block, add func(*Expression)) {
	for _, name := range []string{"count", "for_each", "replicas"} {
		if x := b.Attr(name); x != nil && x.Mode == language.ModeShape {
			add(x)
		}
	}
}

// stated is the depends_on of what waits for it to be evaluated at all.
func (m *Module) stated(s Symbol) []Reference {
	if s.Root != RootModule && s.Root != RootData {
		return nil
	}
	decl := m.Decls.Calls[s.Name]
	if s.Root == RootData {
		decl = m.Decls.Data[s.Name]
	}
	var refs []Reference
	for _, dep := range m.Dependencies(decl.Block, diagnose.New()) {
		refs = append(refs, dep.Reference)
	}
	return refs
}

// Range is where the declaration of the symbol stands.
func (n Node) Range() hcl.Range {
	switch d := n.Module.Decls; n.Symbol.Root {
	case RootLocal:
		return d.Locals[n.Symbol.Name].Expression.Range
	case RootVar, RootValidation:
		return d.Variables[n.Symbol.Name].Range()
	case RootOutput:
		return d.Outputs[n.Symbol.Name].Range()
	case RootModule:
		return d.Calls[n.Symbol.Name].Block.Range()
	case RootData:
		return d.Data[n.Symbol.Name].Block.Range()
	case RootAddressed:
		return d.Addressed[n.Symbol.Addr].Block.Range()
	case RootPath, RootCount, RootEach, RootFray, RootSelf:
	}
	return hcl.Range{}
}
