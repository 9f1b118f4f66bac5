package diagnose

import (
	"github.com/hashicorp/hcl/v2"
)

// Unset is a variable of the configuration that needs a value and has none. It
// is the Extra of the diagnostic about it.
type Unset struct {
	Name        string
	Type        string // as it would be written, "any" where none is stated
	Description string // "" without one
	Sensitive   bool   // the value is not to be shown
}

// UnsetVariables returns the variables without a value of diagnostics, in
// their order, and whether that is the only error among them: then asking for
// the values is all that is missing.
func UnsetVariables(diags hcl.Diagnostics) (unset []Unset, only bool) {
	only = true
	for _, d := range diags {
		if found, ok := hcl.DiagnosticExtra[Unset](d); ok {
			unset = append(unset, found)
		} else if d.Severity == hcl.DiagError {
			only = false
		}
	}
	return unset, only && len(unset) > 0
}
