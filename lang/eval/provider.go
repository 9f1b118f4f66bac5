package eval

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/schema"
)

// handedProviders reads the providers of a module call: what its blocks find
// under the name of a provider; nil if they find all as they are.
func (e *Evaluator) handedProviders(b *configs.Block) map[schema.ProviderName]schema.ProviderName {
	x := b.Attr("providers")
	if x == nil {
		return e.Handed
	}
	pairs, diags := hcl.ExprMap(x.Expr)
	if diags.HasErrors() {
		e.ErrorAt(x.Expr.Range(), "Invalid value for providers", "Write a map such as { gcp = provider.local }.")
		return e.Handed
	}
	handed := map[schema.ProviderName]schema.ProviderName{}
	for _, pair := range pairs {
		inside := schema.ProviderName(hcl.ExprAsKeyword(pair.Key))
		traversal, diags := hcl.AbsTraversalForExpr(pair.Value)
		outside := ""
		if !diags.HasErrors() && traversal.RootName() == "provider" && len(traversal) == 2 {
			outside, _ = configs.StepName(traversal, 1)
		}
		switch {
		case !isProvider(inside):
			e.ErrorAt(pair.Key.Range(), "Invalid value for providers", fmt.Sprintf("A module asks for a provider by the names %s.", strings.Join(providerNames(), " and ")))
		case !isProvider(schema.ProviderName(outside)):
			e.ErrorAt(pair.Value.Range(), "Invalid value for providers", fmt.Sprintf("Write a provider without quotes, such as provider.%s.", strings.Join(providerNames(), " or provider.")))
		default:
			handed[inside] = e.HandedOn(schema.ProviderName(outside))
		}
	}
	return handed
}

// HandedOn is the provider that a name stands for in this module.
func (e *Evaluator) HandedOn(name schema.ProviderName) schema.ProviderName {
	if to, ok := e.Handed[name]; ok {
		return to
	}
	return name
}

func isProvider(name schema.ProviderName) bool { return slices.Contains(schema.ProviderNames(), name) }

func providerNames() []string {
	var names []string
	for _, name := range schema.ProviderNames() {
		names = append(names, string(name))
	}
	return names
}

// ImpliedProvider is the provider of jobs that name none.
func (s *Session) ImpliedProvider() schema.ProviderName {
	declared := s.Root().Decls.Providers
	if s.Options.Local || len(declared) != 1 {
		return schema.ProviderLocal
	}
	return slices.Sorted(maps.Keys(declared))[0]
}
