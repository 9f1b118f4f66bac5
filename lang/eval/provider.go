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

// Providers are the providers of a module by the names that its blocks have for them;
// nil: all as they are.
type Providers map[schema.ProviderName]schema.ProviderName

// On is the provider that a name stands for in the module.
func (p Providers) On(name schema.ProviderName) schema.ProviderName {
	if to, ok := p[name]; ok {
		return to
	}
	return name
}

// handedTo are the providers of a module that the block of a call hands on.
func (p Providers) handedTo(call *configs.Block, r Reporter) Providers {
	x := call.Attr("providers")
	if x == nil {
		return p
	}
	pairs, diags := hcl.ExprMap(x.Expr)
	if diags.HasErrors() {
		r.ErrorAt(x.Expr.Range(), "Invalid value for providers", "Write a map such as { gcp = provider.local }.")
		return p
	}
	handed := Providers{}
	for _, pair := range pairs {
		inside := schema.ProviderName(hcl.ExprAsKeyword(pair.Key))
		traversal, diags := hcl.AbsTraversalForExpr(pair.Value)
		outside := ""
		if !diags.HasErrors() && traversal.RootName() == "provider" && len(traversal) == 2 {
			outside, _ = configs.StepName(traversal, 1)
		}
		switch {
		case !isProvider(inside):
			r.ErrorAt(pair.Key.Range(), "Invalid value for providers", fmt.Sprintf("A module asks for a provider by the names %s.", strings.Join(providerNames(), " and ")))
		case !isProvider(schema.ProviderName(outside)):
			r.ErrorAt(pair.Value.Range(), "Invalid value for providers", fmt.Sprintf("Write a provider without quotes, such as provider.%s.", strings.Join(providerNames(), " or provider.")))
		default:
			handed[inside] = p.On(schema.ProviderName(outside))
		}
	}
	return handed
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
