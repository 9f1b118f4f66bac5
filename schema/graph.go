package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// ordered returns the nodes so that each comes after those it has edges to, and
// the cycles found on the way, each as a path that ends where it began. It does
// not recurse: a chain may be as long as the configuration.
func ordered[N comparable](nodes []N, edges func(N) []N) (order []N, cycles [][]N) {
	const (
		unseen = iota
		open
		done
	)
	type frame struct {
		node N
		next []N
	}
	state := make(map[N]uint8, len(nodes))
	var stack []frame
	for _, start := range nodes {
		if state[start] != unseen {
			continue
		}
		state[start] = open
		stack = append(stack, frame{start, edges(start)})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.next) == 0 {
				state[top.node] = done
				order = append(order, top.node)
				stack = stack[:len(stack)-1]
				continue
			}
			to := top.next[0]
			top.next = top.next[1:]
			switch state[to] {
			case unseen:
				state[to] = open
				stack = append(stack, frame{to, edges(to)})
			case open:
				from := slices.IndexFunc(stack, func(f frame) bool { return f.node == to })
				var cycle []N
				for _, f := range stack[from:] {
					cycle = append(cycle, f.node)
				}
				cycles = append(cycles, append(cycle, to))
			}
		}
	}
	return order, cycles
}

// cycle reports nodes that need each other.
func (r *report) cycle(rng hcl.Range, names []string) {
	if len(names) == 2 {
		r.errorAt(rng, "Refers to itself", fmt.Sprintf("%s needs its own value. Take the reference out.", names[0]))
		return
	}
	r.errorAt(rng, "Cycle of references", fmt.Sprintf(
		"These need each other: %s. Take one of the references out.", strings.Join(names, " -> ")))
}

// symbolEdges are the symbols that must have a value before s can have one:
// for a local its references, for a job what its instances are counted by.
func (e *evaluator) symbolEdges(s symbol) []symbol {
	var edges []symbol
	for _, x := range e.shapeOf(s) {
		for _, ref := range x.refs {
			edges = append(edges, ref.symbol)
		}
	}
	if s.root == rootThing {
		for _, job := range e.decls.things[s.addr].jobs {
			edges = append(edges, thing(job.addr))
		}
	}
	return edges
}

// shapeOf returns the expressions that the value of a symbol is made from.
func (e *evaluator) shapeOf(s symbol) []*expression {
	switch s.root {
	case rootLocal:
		return []*expression{e.decls.locals[s.name].x}
	case rootThing:
		decl := e.decls.things[s.addr]
		var shape []*expression
		for _, x := range []*expression{
			decl.block.attr("count"), decl.block.attr("for_each"), decl.block.attr("replicas"),
			decl.block.child("resources").attr("ports"),
		} {
			if x != nil && !x.perInstance {
				shape = append(shape, x)
			}
		}
		return shape
	case rootVar, rootPath, rootCount, rootEach:
	}
	return nil
}

// evaluateSymbols gives every local its value and every declaration its
// instances, in the order in which they need each other.
func (e *evaluator) evaluateSymbols() {
	var nodes []symbol
	for _, name := range sortedKeys(e.decls.locals) {
		nodes = append(nodes, symbol{root: rootLocal, name: name})
	}
	for _, decl := range e.decls.sorted(KindJob, KindActorService) {
		nodes = append(nodes, thing(decl.addr))
	}
	order, cycles := ordered(nodes, e.symbolEdges)
	for _, cycle := range cycles {
		names := make([]string, 0, len(cycle))
		for _, s := range cycle {
			names = append(names, s.String())
			e.failed[s] = true
		}
		e.cycle(e.symbolRange(cycle[0]), names)
	}
	for _, s := range order {
		switch {
		case e.failed[s]:
		case s.root == rootLocal:
			out := e.eval(e.decls.locals[s.name].x, nil)
			e.locals[s.name] = out.val
			e.failed[s] = !out.ok
		case s.root == rootThing && (s.addr.Kind == KindJob || s.addr.Kind == KindActorService):
			e.failed[s] = !e.expand(e.decls.things[s.addr])
		}
	}
}

func (e *evaluator) symbolRange(s symbol) hcl.Range {
	if s.root == rootLocal {
		return e.decls.locals[s.name].x.rng
	}
	return e.decls.things[s.addr].block.rng()
}

// jobDependencies finds what each job and service must wait for: depends_on,
// and what its expressions refer to, through locals too. Cycles are reported.
func (e *evaluator) jobDependencies() {
	decls := e.decls.sorted(KindJob, KindActorService)
	through := e.localDependencies()
	stated := map[*declaration][]Address{}
	for _, group := range e.decls.sorted(KindJobGroup) {
		stated[group] = e.dependsOn(group.block)
	}
	for _, decl := range decls {
		var uses []Address
		decl.block.walk(func(x *expression) { uses = append(uses, dependenciesOf(x, through)...) })
		dependsOn := e.dependsOn(decl.block)
		if decl.group != nil {
			for _, x := range decl.group.block.attrs {
				uses = append(uses, dependenciesOf(x, through)...)
			}
			dependsOn = append(dependsOn, stated[decl.group]...)
		}
		decl.dependsOn, decl.uses = withoutCovered(dependsOn), withoutCovered(uses)
	}
	e.reportJobCycles(decls)
}

func (e *evaluator) reportJobCycles(decls []*declaration) {
	nodes := make([]Address, 0, len(decls))
	for _, decl := range decls {
		nodes = append(nodes, decl.addr)
	}
	_, cycles := ordered(nodes, func(a Address) []Address {
		decl := e.decls.things[a]
		if a.Kind == KindJobGroup {
			var jobs []Address
			for _, job := range decl.jobs {
				jobs = append(jobs, job.addr)
			}
			return jobs
		}
		var next []Address
		for _, dep := range slices.Concat(decl.dependsOn, decl.uses) {
			next = append(next, dep.Base())
		}
		return next
	})
	for _, cycle := range cycles {
		names := make([]string, 0, len(cycle))
		for _, a := range cycle {
			names = append(names, a.String())
		}
		e.cycle(e.decls.things[cycle[0]].block.rng(), names)
	}
}

// localDependencies maps each local to the jobs that its value comes from.
func (e *evaluator) localDependencies() map[string][]Address {
	through := make(map[string][]Address, len(e.decls.locals))
	order, _ := ordered(sortedKeys(e.decls.locals), func(name string) []string {
		var next []string
		for _, ref := range e.decls.locals[name].x.refs {
			if ref.symbol.root == rootLocal {
				next = append(next, ref.symbol.name)
			}
		}
		return next
	})
	for _, name := range order {
		if deps := dependenciesOf(e.decls.locals[name].x, through); len(deps) > 0 {
			through[name] = withoutCovered(deps)
		}
	}
	return through
}

func dependenciesOf(x *expression, through map[string][]Address) []Address {
	var deps []Address
	for _, ref := range x.refs {
		switch ref.symbol.root {
		case rootLocal:
			deps = append(deps, through[ref.symbol.name]...)
		case rootThing:
			if runs(ref.addr.Kind) {
				deps = append(deps, ref.addr)
			}
		case rootVar, rootPath, rootCount, rootEach:
		}
	}
	return deps
}

// runs reports whether a kind is one that can be waited for.
func runs(k Kind) bool {
	switch k {
	case KindJob, KindJobGroup, KindActorService:
		return true
	case KindNamespace, KindReservation:
	}
	return false
}

// withoutCovered sorts addresses, without duplicates and without instances of
// what is there as a whole.
func withoutCovered(addrs []Address) []Address {
	if len(addrs) == 0 {
		return nil
	}
	slices.SortFunc(addrs, Address.Compare)
	addrs = slices.Compact(addrs)
	whole := make(map[Address]bool, len(addrs))
	for _, a := range addrs {
		whole[a] = true
	}
	return slices.DeleteFunc(addrs, func(a Address) bool { return !a.Key.IsZero() && whole[a.Base()] })
}

// dependsOn reads depends_on: references to what runs.
func (e *evaluator) dependsOn(b *block) []Address {
	x := b.attr("depends_on")
	if x == nil {
		return nil
	}
	exprs, diags := hcl.ExprList(x.expr)
	if diags.HasErrors() {
		e.errorAt(x.expr.Range(), "Invalid depends_on", "Write a list of references, such as [job.prepare, job_group.train].")
		return nil
	}
	var deps []Address
	for _, expr := range exprs {
		traversal, diags := hcl.AbsTraversalForExpr(expr)
		if diags.HasErrors() {
			e.errorAt(expr.Range(), "Invalid depends_on", "Write a reference without quotes, such as job.prepare.")
			continue
		}
		ref, d := e.reference(traversal, allowed{})
		switch {
		case d != nil:
			e.add(d)
		case ref.symbol.root != rootThing || !runs(ref.addr.Kind):
			e.errorAt(expr.Range(), "Invalid depends_on", "Only a job, a job_group or an actor_service can be waited for.")
		case !ref.addr.Key.IsZero() && !e.exists(ref.addr):
			e.errorAt(expr.Range(), "Reference to nothing", fmt.Sprintf("There is no instance %s: %s has %d.", ref.addr, ref.addr.Base(), len(e.decls.things[ref.addr.Base()].instances)))
		default:
			deps = append(deps, ref.addr)
		}
	}
	return deps
}

func (e *evaluator) exists(addr Address) bool {
	decl := e.decls.things[addr.Base()]
	return e.failed[thing(decl.addr)] || slices.ContainsFunc(decl.instances, func(i instance) bool { return i.key == addr.Key })
}
