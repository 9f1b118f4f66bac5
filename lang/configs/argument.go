package configs

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/lang/diagnose"
)

// CheckArguments reports arguments of module calls that are no variables.
func (m *Module) CheckArguments() {
	for _, name := range slices.Sorted(maps.Keys(m.Children)) {
		call, child := m.Decls.Calls[name].Block, m.Children[name]
		call.walkOpen(func(x *Expression) {
			if child.Decls.Variables[x.Name] == nil {
				m.ErrorAt(x.Range, "Unknown argument", fmt.Sprintf("The module %s has no variable %q. %s", child.Files.Shown, x.Name, diagnose.DidYouMean(x.Name, child.Decls.VariableNames())))
			}
		})
	}
}
