package schema

import "github.com/hashicorp/hcl/v2"

// Settings decodes the fray block alone, for verbs that must work while a
// variable is unset or a job is declared wrongly: only mistakes in that block
// are reported. With local, a state in a bucket is kept here instead, as in
// Options.Local.
func (s *Source) Settings(local bool) (Settings, hcl.Diagnostics) {
	e := s.evaluator(Options{Local: local}, maxInstances)
	root := e.structure(s.bodies, language(), nil)
	e.report = newReport()
	settings := e.settings(root.child("fray"))
	return settings, e.sorted()
}
