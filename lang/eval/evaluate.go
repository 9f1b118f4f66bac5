package eval

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/configs"
)

// Evaluate evaluates the configuration. It returns a diagnostic if the files are for
// another version of fray: then it evaluates nothing, since other errors may follow
// from that; or if it was canceled.
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
	if s.Canceled() {
		return CanceledError()
	}
	s.evaluateNodes()
	if s.Canceled() {
		return CanceledError()
	}
	s.jobDependencies()
	if s.Canceled() {
		return CanceledError()
	}
	return nil
}
