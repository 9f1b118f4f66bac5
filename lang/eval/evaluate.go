package eval

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/configs"
)

// Evaluate gives everything its value. A diagnostic says that the files are of
// another version: then nothing was done, since the rest may be mistaken for its
// consequences.
func (s *Session) Evaluate() *hcl.Diagnostic {
	s.Modules = configs.Modules(s.Source.Root, s.Report)
	root := s.NewEvaluator(s.Modules[0], nil, configs.Instance{})
	for _, m := range s.Modules {
		if d := versionMismatch(m.Decls.Fray, s.Options.Version); d != nil {
			return d
		}
	}
	root.evaluateVariables()
	for _, m := range s.Modules {
		m.CheckArguments()
		m.ResolveAll()
	}
	s.evaluateNodes()
	s.jobDependencies()
	return nil
}
