package eval

import (
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/schema"
)

// evaluateNodes gives everything its value, and every declaration its
// instances, in the order in which they need each other.
func (s *Session) evaluateNodes() {
	order, cycles := configs.Ordered(configs.AllNodes(s.Modules), s.edges)
	broken := map[configs.Node]bool{}
	for _, cycle := range cycles {
		names := make([]string, 0, len(cycle))
		for _, n := range cycle {
			names = append(names, n.String())
			broken[n] = true
		}
		configs.ReportCycle(s.Report, cycle[0].Range(), names)
	}
	s.Rank = make(map[configs.Node]int, len(order))
	for i, n := range order {
		s.Rank[n] = i
		if s.Canceled() {
			return
		}
		for _, e := range s.instances[n.Module] {
			if s.full {
				return // of room
			}
			if broken[n] {
				e.failed[n.Symbol] = true
			}
			e.EvaluateSymbol(n.Symbol)
		}
	}
}

// edges are those of a node, none once canceled: then nothing is made of the order.
func (s *Session) edges(n configs.Node) []configs.Node {
	if s.Canceled() {
		return nil
	}
	return n.Edges()
}

// EvaluateSymbol gives a symbol its value in one instance of its module.
func (e *Evaluator) EvaluateSymbol(s configs.Symbol) {
	var through []schema.Address
	for _, x := range e.valueOf(s) {
		through = append(through, x.in.dependenciesOf(x.Expression)...)
	}
	switch s.Root {
	case configs.RootData:
		through = append(through, e.DependsOn(e.Decls.Data[s.Name].Block)...)
	case configs.RootOutput:
		through = append(through, e.DependsOn(e.Decls.Outputs[s.Name])...)
	case configs.RootVar, configs.RootLocal, configs.RootModule, configs.RootAddressed, configs.RootValidation, configs.RootPath, configs.RootCount, configs.RootEach, configs.RootFray, configs.RootSelf:
	}
	if len(through) > 0 {
		e.through[s] = withoutCovered(through)
	}
	if e.failed[s] {
		return
	}
	switch s.Root {
	case configs.RootLocal:
		x := e.Decls.Locals[s.Name].Expression
		out := e.Eval(x, nil)
		e.locals[s.Name] = out.Value
		e.failed[s] = !out.OK || !e.fits(x, out.Value)
	case configs.RootVar:
		e.argument(s.Name)
	case configs.RootValidation:
		e.validate(s.Name)
	case configs.RootOutput:
		e.handOut(s.Name)
	case configs.RootModule:
		e.expandCall(s.Name)
	case configs.RootData:
		e.read(s.Name)
	case configs.RootAddressed:
		e.failed[s] = !e.expand(e.Decls.Addressed[s.Addr])
	case configs.RootPath, configs.RootCount, configs.RootEach, configs.RootFray, configs.RootSelf:
	}
}

// origin is an expression that a value comes from, and where it is evaluated.
type origin struct {
	*configs.Expression
	in *Evaluator
}

// valueOf are the expressions that the value of a symbol comes from.
func (e *Evaluator) valueOf(s configs.Symbol) []origin {
	switch s.Root {
	case configs.RootLocal:
		return []origin{{e.Decls.Locals[s.Name].Expression, e}}
	case configs.RootVar:
		if e.Parent != nil {
			if x := e.CallBlock().Attr(s.Name); x != nil {
				return []origin{{x, e.Parent}}
			}
		}
	case configs.RootOutput:
		if x := e.Decls.Outputs[s.Name].Attr("value"); x != nil {
			return []origin{{x, e}}
		}
	case configs.RootData:
		var found []origin
		e.Decls.Data[s.Name].Block.Walk(func(x *configs.Expression) { found = append(found, origin{x, e}) })
		return found
	case configs.RootModule, configs.RootAddressed, configs.RootValidation, configs.RootPath, configs.RootCount, configs.RootEach, configs.RootFray, configs.RootSelf:
	}
	return nil
}
