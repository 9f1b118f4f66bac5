package lang

import (
	"slices"

	"github.com/hashicorp/hcl/v2"

	langdiagnose "github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
)

// CheckVariables returns what is wrong with the values that opts gives the
// variables, apart from those that are missing.
func (s *Source) CheckVariables(opts eval.Options) hcl.Diagnostics {
	_, diags := s.Evaluate(opts)
	return slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool {
		failed, ok := hcl.DiagnosticExtra[langdiagnose.FailedCondition](d)
		return d.Severity != hcl.DiagError || !langdiagnose.HasCause(d, langdiagnose.InvalidValue) && (!ok || !failed.Variable)
	})
}
