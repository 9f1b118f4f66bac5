package eval

import (
	"slices"

	"github.com/fray-ml/fray/lang/configs"
)

// expandCall gives a module call its instances, for one instance of the module
// that it stands in.
func (e *Evaluator) expandCall(name string) {
	call := e.Decls.Calls[name]
	child := e.Module.Children[name]
	s := configs.Symbol{Root: configs.RootModule, Name: name}
	if child == nil || !e.expand(call) {
		e.failed[s] = true
		return
	}
	depends := e.DependsOn(call.Block)
	for _, i := range call.Instances {
		inner := e.Session.NewEvaluator(child, e, i)
		inner.inherited = append(slices.Clone(e.inherited), depends...)
		inner.Handed = e.Handed.handedTo(call.Block, e.Reporter)
		e.Children[name] = append(e.Children[name], inner)
	}
}
