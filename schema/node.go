package schema

import (
	"github.com/hashicorp/hcl/v2"
)

// node is a symbol of a module, with one value for each instance of it.
type node struct {
	m *module
	s symbol
}

func (n node) String() string {
	if n.m.path == "" {
		return n.s.String()
	}
	return n.m.path + "." + n.s.String()
}

// nodes are what is given a value before the declarations are decoded.
func (s *session) nodes() []node {
	var nodes []node
	for _, m := range s.all {
		add := func(root rootName, names []string) {
			for _, name := range names {
				nodes = append(nodes, node{m, symbol{root: root, name: name}})
			}
		}
		if m.parent != nil {
			add(rootVar, m.decls.variableNames())
			add(rootOutput, sortedKeys(m.decls.outputs))
		}
		for _, name := range m.decls.variableNames() {
			if len(m.decls.variables[name].blocks["validation"]) > 0 {
				add(rootValidation, []string{name})
			}
		}
		add(rootLocal, sortedKeys(m.decls.locals))
		add(rootModule, sortedKeys(m.decls.calls))
		add(rootData, sortedKeys(m.decls.data))
		for _, decl := range m.decls.sorted(KindJob, KindActorService) {
			nodes = append(nodes, node{m, thing(decl.addr)})
		}
	}
	return nodes
}

// edges are the nodes that must have a value before n can have one: for a local
// its references, for a job what its instances are counted by.
func (n node) edges() []node {
	var edges []node
	for _, x := range n.m.shapeOf(n.s) {
		edges = append(edges, n.m.needs(x)...)
	}
	for _, ref := range n.m.stated(n.s) {
		edges = append(edges, n.m.nodesOf(ref.symbol)...)
	}
	switch n.s.root {
	case rootThing:
		for _, job := range n.m.decls.things[n.s.addr].jobs {
			edges = append(edges, node{n.m, thing(job.addr)})
		}
	case rootVar:
		if parent := n.m.parent; parent != nil {
			if x := n.m.call().attr(n.s.name); x != nil {
				edges = append(edges, parent.needs(x)...)
			}
		}
	case rootValidation:
		edges = append(edges, n.m.nodesOf(symbol{root: rootVar, name: n.s.name})...)
	case rootData:
		if DataKind(n.m.decls.data[n.s.name].block.typ.variant) == DataAccelerators {
			edges = append(edges, n.m.offered()...)
		}
	case rootLocal, rootOutput, rootModule, rootPath, rootCount, rootEach, rootFray, rootSelf:
	}
	if n.m.parent != nil {
		edges = append(edges, node{n.m.parent, symbol{root: rootModule, name: n.m.name}})
	}
	return edges
}

// offered are the nodes that the offers of the root's provider blocks refer to.
func (m *module) offered() []node {
	for m.parent != nil {
		m = m.parent
	}
	var nodes []node
	for _, offer := range m.decls.providers[ProviderGCP].children("offer") {
		offer.walk(func(x *expression) { nodes = append(nodes, m.needs(x)...) })
	}
	return nodes
}

// needs are the nodes that an expression refers to.
func (m *module) needs(x *expression) []node {
	var nodes []node
	for _, ref := range x.refs {
		nodes = append(nodes, m.nodesOf(ref.symbol)...)
	}
	return nodes
}

// nodesOf are the nodes that have the value of a symbol that is referred to.
func (m *module) nodesOf(s symbol) []node {
	switch s.root {
	case rootVar:
		if m.parent == nil {
			return nil // has its value already
		}
	case rootModule:
		nodes := []node{{m, symbol{root: rootModule, name: s.name}}}
		child := m.children[s.name]
		if child == nil {
			return nodes
		}
		for _, name := range sortedKeys(child.decls.outputs) {
			if s.output == "" || s.output == name {
				nodes = append(nodes, node{child, symbol{root: rootOutput, name: name}})
			}
		}
		return nodes
	case rootPath, rootCount, rootEach, rootFray, rootSelf:
		return nil
	case rootThing:
		if !runs(s.addr.Kind) {
			return nil
		}
	case rootLocal, rootData, rootOutput, rootValidation:
	}
	return []node{{m, s}}
}

// shapeOf returns the expressions that the value of a symbol is made from.
func (m *module) shapeOf(s symbol) []*expression {
	var shape []*expression
	add := func(x *expression) { shape = append(shape, x) }
	switch s.root {
	case rootLocal:
		add(m.decls.locals[s.name].x)
	case rootOutput:
		m.decls.outputs[s.name].walk(add)
	case rootData:
		m.decls.data[s.name].block.walk(add)
	case rootModule:
		addShape(m.decls.calls[s.name].block, add)
	case rootValidation:
		for _, b := range m.decls.variables[s.name].blocks["validation"] {
			b.walk(add)
		}
	case rootThing:
		decl := m.decls.things[s.addr]
		addShape(decl.block, add)
		if x := decl.block.child("resources").attr("ports"); x != nil && !x.perInstance {
			add(x)
		}
	case rootVar, rootPath, rootCount, rootEach, rootFray, rootSelf:
	}
	return shape
}

// addShape adds what the instances of a block are counted by.
func addShape(b *block, add func(*expression)) {
	for _, name := range []string{"count", "for_each", "replicas"} {
		if x := b.attr(name); x != nil && x.mode == modeShape {
			add(x)
		}
	}
}

// stated is the depends_on of what waits for it to be evaluated at all.
func (m *module) stated(s symbol) []reference {
	if s.root != rootModule && s.root != rootData {
		return nil
	}
	decl := m.decls.calls[s.name]
	if s.root == rootData {
		decl = m.decls.data[s.name]
	}
	var refs []reference
	for _, dep := range m.dependencies(decl.block, newReport()) {
		refs = append(refs, dep.reference)
	}
	return refs
}

// evaluateNodes gives everything its value, and every declaration its
// instances, in the order in which they need each other.
func (s *session) evaluateNodes() {
	order, cycles := ordered(s.nodes(), node.edges)
	broken := map[node]bool{}
	for _, cycle := range cycles {
		names := make([]string, 0, len(cycle))
		for _, n := range cycle {
			names = append(names, n.String())
			broken[n] = true
		}
		s.cycle(cycle[0].rng(), names)
	}
	s.rank = make(map[node]int, len(order))
	for i, n := range order {
		s.rank[n] = i
		for _, e := range n.m.instances {
			if s.full {
				return // of room
			}
			if broken[n] {
				e.failed[n.s] = true
			}
			e.evaluateSymbol(n.s)
		}
	}
}

func (n node) rng() hcl.Range {
	switch d := n.m.decls; n.s.root {
	case rootLocal:
		return d.locals[n.s.name].x.rng
	case rootVar, rootValidation:
		return d.variables[n.s.name].rng()
	case rootOutput:
		return d.outputs[n.s.name].rng()
	case rootModule:
		return d.calls[n.s.name].block.rng()
	case rootData:
		return d.data[n.s.name].block.rng()
	case rootThing:
		return d.things[n.s.addr].block.rng()
	case rootPath, rootCount, rootEach, rootFray, rootSelf:
	}
	return hcl.Range{}
}

// evaluateSymbol gives a symbol its value in one instance of its module.
func (e *evaluator) evaluateSymbol(s symbol) {
	var through []Address
	for _, x := range e.valueOf(s) {
		through = append(through, x.in.dependenciesOf(x.expression)...)
	}
	switch s.root {
	case rootData:
		through = append(through, e.dependsOn(e.decls.data[s.name].block)...)
	case rootOutput:
		through = append(through, e.dependsOn(e.decls.outputs[s.name])...)
	case rootVar, rootLocal, rootModule, rootThing, rootValidation, rootPath, rootCount, rootEach, rootFray, rootSelf:
	}
	if len(through) > 0 {
		e.through[s] = withoutCovered(through)
	}
	if e.failed[s] {
		return
	}
	switch s.root {
	case rootLocal:
		x := e.decls.locals[s.name].x
		out := e.eval(x, nil)
		e.locals[s.name] = out.val
		e.failed[s] = !out.ok || !e.fits(x, out.val)
	case rootVar:
		e.argument(s.name)
	case rootValidation:
		e.validate(s.name)
	case rootOutput:
		e.handOut(s.name)
	case rootModule:
		e.expandCall(s.name)
	case rootData:
		e.read(s.name)
	case rootThing:
		e.failed[s] = !e.expand(e.decls.things[s.addr])
	case rootPath, rootCount, rootEach, rootFray, rootSelf:
	}
}

// origin is an expression that a value comes from, and where it is evaluated.
type origin struct {
	*expression
	in *evaluator
}

// valueOf are the expressions that the value of a symbol comes from.
func (e *evaluator) valueOf(s symbol) []origin {
	switch s.root {
	case rootLocal:
		return []origin{{e.decls.locals[s.name].x, e}}
	case rootVar:
		if e.parent != nil {
			if x := e.callBlock().attr(s.name); x != nil {
				return []origin{{x, e.parent}}
			}
		}
	case rootOutput:
		if x := e.decls.outputs[s.name].attr("value"); x != nil {
			return []origin{{x, e}}
		}
	case rootData:
		var found []origin
		e.decls.data[s.name].block.walk(func(x *expression) { found = append(found, origin{x, e}) })
		return found
	case rootModule, rootThing, rootValidation, rootPath, rootCount, rootEach, rootFray, rootSelf:
	}
	return nil
}

// callBlock is the block that calls this instance of the module.
func (e *evaluator) callBlock() *block { return e.parent.decls.calls[e.mod.name].block }
