package eval

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/schema"
)

// jobDependencies finds what each job and service must wait for: depends_on,
// and what its expressions refer to, through locals and modules too. Cycles are
// reported. It is not complete once canceled.
func (s *Session) jobDependencies() {
	var all []schema.Address
	for _, e := range s.Order {
		stated := map[*configs.Declaration][]schema.Address{}
		for _, group := range e.Decls.Sorted(schema.KindJobGroup) {
			stated[group] = e.DependsOn(group.Block)
		}
		for _, decl := range e.Decls.Sorted(schema.KindJob, schema.KindActorService) {
			if s.Canceled() {
				return
			}
			var uses []schema.Address
			decl.Block.Walk(func(x *configs.Expression) { uses = append(uses, e.dependenciesOf(x)...) })
			dependsOn := append(e.DependsOn(decl.Block), e.inherited...)
			if decl.Group != nil {
				for _, x := range decl.Group.Block.Attrs {
					uses = append(uses, e.dependenciesOf(x)...)
				}
				dependsOn = append(dependsOn, stated[decl.Group]...)
			}
			decl.DependsOn, decl.Uses = withoutCovered(dependsOn), withoutCovered(uses)
			all = append(all, e.Global(decl.Addr))
		}
	}
	s.reportScheduled(all)
	s.reportJobCycles(all)
}

// reportScheduled reports dependencies on jobs with a schedule: these never end for good,
// and are there during a run only.
func (s *Session) reportScheduled(nodes []schema.Address) {
	for _, addr := range nodes {
		_, decl := s.Declared(addr)
		for _, dep := range slices.Concat(decl.DependsOn, decl.Uses) {
			if dep.Kind != schema.KindJob {
				continue
			}
			if _, on := s.Declared(dep.Base()); on == nil || on.Block.Child("schedule") == nil {
				continue
			}
			at := decl.Block.Range()
			if x := decl.Block.Attr("depends_on"); x != nil && slices.Contains(decl.DependsOn, dep) {
				at = x.Expr.Range()
			}
			s.Report.ErrorAt(at, "Dependency on a scheduled job", fmt.Sprintf("%s has a schedule: it runs again and again, so that nothing can wait for its end. Remove the dependency, or the schedule.", dep))
		}
	}
}

func (s *Session) reportJobCycles(nodes []schema.Address) {
	_, cycles := configs.Ordered(nodes, func(a schema.Address) []schema.Address {
		if s.Canceled() {
			return nil
		}
		e, decl := s.Declared(a)
		var next []schema.Address
		if a.Kind == schema.KindJobGroup {
			for _, job := range decl.Members {
				next = append(next, e.Global(job.Addr))
			}
			return next
		}
		for _, dep := range slices.Concat(decl.DependsOn, decl.Uses) {
			next = append(next, dep.Base())
		}
		return next
	})
	for _, cycle := range cycles {
		names := make([]string, 0, len(cycle))
		for _, a := range cycle {
			names = append(names, a.String())
		}
		_, decl := s.Declared(cycle[0])
		configs.ReportCycle(s.Report, decl.Block.Range(), names)
	}
}

// dependenciesOf is what runs and an expression has values of.
func (e *Evaluator) dependenciesOf(x *configs.Expression) []schema.Address {
	var deps []schema.Address
	for _, ref := range x.Refs {
		switch ref.Symbol.Root {
		case configs.RootLocal, configs.RootVar, configs.RootData:
			deps = append(deps, e.through[ref.Symbol]...)
		case configs.RootModule:
			for _, child := range e.called(ref) {
				for _, s := range child.outputsOf(ref.Symbol.Output) {
					deps = append(deps, child.through[s]...)
				}
			}
		case configs.RootAddressed:
			if configs.Runs(ref.Addr.Kind) {
				deps = append(deps, e.Global(ref.Addr))
			}
		case configs.RootPath, configs.RootCount, configs.RootEach, configs.RootFray, configs.RootSelf, configs.RootOutput, configs.RootValidation:
		}
	}
	return deps
}

// called are the instances of a module that a reference names.
func (e *Evaluator) called(ref configs.Reference) []*Evaluator {
	children := e.Children[ref.Symbol.Name]
	if ref.Key.IsZero() {
		return children
	}
	for _, child := range children {
		if child.at.Key == ref.Key {
			return []*Evaluator{child}
		}
	}
	return nil
}

// outputsOf are the outputs that a reference to the module names, all for "".
func (e *Evaluator) outputsOf(name string) []configs.Symbol {
	if name != "" {
		return []configs.Symbol{{Root: configs.RootOutput, Name: name}}
	}
	symbols := make([]configs.Symbol, 0, len(e.Decls.Outputs))
	for _, name := range slices.Sorted(maps.Keys(e.Decls.Outputs)) {
		symbols = append(symbols, configs.Symbol{Root: configs.RootOutput, Name: name})
	}
	return symbols
}

// withoutCovered sorts addresses, without duplicates and without instances of
// what is there as a whole.
func withoutCovered(addrs []schema.Address) []schema.Address {
	if len(addrs) == 0 {
		return nil
	}
	slices.SortFunc(addrs, schema.Address.Compare)
	addrs = slices.Compact(addrs)
	whole := make(map[schema.Address]bool, len(addrs))
	for _, a := range addrs {
		whole[a] = true
	}
	return slices.DeleteFunc(addrs, func(a schema.Address) bool { return !a.Key.IsZero() && whole[a.Base()] })
}

// DependsOn is what a block states that it waits for.
func (e *Evaluator) DependsOn(b *configs.Block) []schema.Address {
	var addrs []schema.Address
	for _, dep := range e.Module.Dependencies(b, e.Report) {
		switch dep.Symbol.Root {
		case configs.RootModule:
			for _, child := range e.called(dep.Reference) {
				addrs = append(addrs, child.all()...)
			}
		case configs.RootData:
			addrs = append(addrs, e.through[dep.Symbol]...)
			addrs = append(addrs, e.DependsOn(e.Decls.Data[dep.Symbol.Name].Block)...)
		case configs.RootAddressed:
			if !dep.Addr.Key.IsZero() && !e.exists(dep.Addr) {
				e.ErrorAt(dep.Expr.Range(), "Reference to nothing", fmt.Sprintf("There is no instance %s: %s has %d.", dep.Addr, dep.Addr.Base(), len(e.Decls.Addressed[dep.Addr.Base()].Instances)))
				continue
			}
			addrs = append(addrs, e.Global(dep.Addr))
		case configs.RootVar, configs.RootLocal, configs.RootPath, configs.RootCount, configs.RootEach, configs.RootFray, configs.RootSelf, configs.RootOutput, configs.RootValidation:
		}
	}
	return addrs
}

// all are the addresses of all jobs and services of a module and of the modules in it.
func (e *Evaluator) all() []schema.Address {
	var addrs []schema.Address
	for _, decl := range e.Decls.Sorted(schema.KindJob, schema.KindActorService) {
		addrs = append(addrs, e.Global(decl.Addr))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Children)) {
		for _, child := range e.Children[name] {
			addrs = append(addrs, child.all()...)
		}
	}
	return addrs
}

func (e *Evaluator) exists(addr schema.Address) bool {
	decl := e.Decls.Addressed[addr.Base()]
	return e.failed[configs.SymbolOf(decl.Addr)] || slices.ContainsFunc(decl.Instances, func(i configs.Instance) bool { return i.Key == addr.Key })
}
