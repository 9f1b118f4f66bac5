package schema

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
)

// jobDependencies finds what each job and service must wait for: depends_on,
// and what its expressions refer to, through locals and modules too. Cycles are
// reported.
func (s *session) jobDependencies() {
	var all []Address
	for _, e := range s.order {
		stated := map[*declaration][]Address{}
		for _, group := range e.decls.sorted(KindJobGroup) {
			stated[group] = e.dependsOn(group.block)
		}
		for _, decl := range e.decls.sorted(KindJob, KindActorService) {
			var uses []Address
			decl.block.walk(func(x *expression) { uses = append(uses, e.dependenciesOf(x)...) })
			dependsOn := append(e.dependsOn(decl.block), e.inherited...)
			if decl.group != nil {
				for _, x := range decl.group.block.attrs {
					uses = append(uses, e.dependenciesOf(x)...)
				}
				dependsOn = append(dependsOn, stated[decl.group]...)
			}
			decl.dependsOn, decl.uses = withoutCovered(dependsOn), withoutCovered(uses)
			all = append(all, e.global(decl.addr))
		}
	}
	s.reportJobCycles(all)
}

func (s *session) reportJobCycles(nodes []Address) {
	_, cycles := ordered(nodes, func(a Address) []Address {
		e, decl := s.declared(a)
		var next []Address
		if a.Kind == KindJobGroup {
			for _, job := range decl.jobs {
				next = append(next, e.global(job.addr))
			}
			return next
		}
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
		_, decl := s.declared(cycle[0])
		s.cycle(decl.block.rng(), names)
	}
}

// dependenciesOf is what runs and an expression has values of.
func (e *evaluator) dependenciesOf(x *expression) []Address {
	var deps []Address
	for _, ref := range x.refs {
		switch ref.symbol.root {
		case rootLocal, rootVar, rootData:
			deps = append(deps, e.through[ref.symbol]...)
		case rootModule:
			for _, child := range e.called(ref) {
				for _, s := range child.outputsOf(ref.symbol.output) {
					deps = append(deps, child.through[s]...)
				}
			}
		case rootThing:
			if runs(ref.addr.Kind) {
				deps = append(deps, e.global(ref.addr))
			}
		case rootPath, rootCount, rootEach, rootFray, rootSelf, rootOutput, rootValidation:
		}
	}
	return deps
}

// called are the instances of a module that a reference names.
func (e *evaluator) called(ref reference) []*evaluator {
	children := e.children[ref.symbol.name]
	if ref.key.IsZero() {
		return children
	}
	for _, child := range children {
		if child.at.key == ref.key {
			return []*evaluator{child}
		}
	}
	return nil
}

// outputsOf are the outputs that a reference to the module names, all for "".
func (e *evaluator) outputsOf(name string) []symbol {
	if name != "" {
		return []symbol{{root: rootOutput, name: name}}
	}
	symbols := make([]symbol, 0, len(e.decls.outputs))
	for _, name := range sortedKeys(e.decls.outputs) {
		symbols = append(symbols, symbol{root: rootOutput, name: name})
	}
	return symbols
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

// dependency is one entry of depends_on.
type dependency struct {
	reference
	expr hcl.Expression
}

// dependencies reads depends_on: references to what runs, and to modules and
// data that come of it. Mistakes go to r.
func (m *module) dependencies(b *block, r *report) []dependency {
	x := b.attr("depends_on")
	if x == nil {
		return nil
	}
	exprs, diags := hcl.ExprList(x.expr)
	if diags.HasErrors() {
		r.errorAt(x.expr.Range(), "Invalid value for depends_on", "Write a list of references, such as [job.prepare, job_group.train].")
		return nil
	}
	var deps []dependency
	for _, expr := range exprs {
		traversal, diags := hcl.AbsTraversalForExpr(expr)
		if diags.HasErrors() {
			r.errorAt(expr.Range(), "Invalid value for depends_on", "Write a reference without quotes, such as job.prepare.")
			continue
		}
		ref, d := m.reference(traversal, allowed{})
		root := ref.symbol.root
		switch {
		case d != nil:
			r.add(d)
		case root == rootModule, root == rootData, root == rootThing && runs(ref.addr.Kind):
			deps = append(deps, dependency{ref, expr})
		default:
			r.errorAt(expr.Range(), "Invalid value for depends_on", "Only a job, a job_group, an actor_service, a module or a data block can be waited for.")
		}
	}
	return deps
}

// dependsOn is what a block states that it waits for.
func (e *evaluator) dependsOn(b *block) []Address {
	var addrs []Address
	for _, dep := range e.mod.dependencies(b, e.report) {
		switch dep.symbol.root {
		case rootModule:
			for _, child := range e.called(dep.reference) {
				addrs = append(addrs, child.all()...)
			}
		case rootData:
			addrs = append(addrs, e.through[dep.symbol]...)
			addrs = append(addrs, e.dependsOn(e.decls.data[dep.symbol.name].block)...)
		case rootThing:
			if !dep.addr.Key.IsZero() && !e.exists(dep.addr) {
				e.errorAt(dep.expr.Range(), "Reference to nothing", fmt.Sprintf("There is no instance %s: %s has %d.", dep.addr, dep.addr.Base(), len(e.decls.things[dep.addr.Base()].instances)))
				continue
			}
			addrs = append(addrs, e.global(dep.addr))
		case rootVar, rootLocal, rootPath, rootCount, rootEach, rootFray, rootSelf, rootOutput, rootValidation:
		}
	}
	return addrs
}

// all is everything that runs in a module and the modules in it.
func (e *evaluator) all() []Address {
	var addrs []Address
	for _, decl := range e.decls.sorted(KindJob, KindActorService) {
		addrs = append(addrs, e.global(decl.addr))
	}
	for _, name := range sortedKeys(e.children) {
		for _, child := range e.children[name] {
			addrs = append(addrs, child.all()...)
		}
	}
	return addrs
}

func (e *evaluator) exists(addr Address) bool {
	decl := e.decls.things[addr.Base()]
	return e.failed[thing(decl.addr)] || slices.ContainsFunc(decl.instances, func(i instance) bool { return i.key == addr.Key })
}
