package schema

import "github.com/hashicorp/hcl/v2"

// Settings decodes the fray block alone, for verbs that must work while a
// variable is unset or a job is declared wrongly: only mistakes in that block
// are reported. With local, a state in a bucket is kept here instead, as in
// Options.Local.
func (s *Source) Settings(local bool) (Settings, hcl.Diagnostics) {
	root := newReport().structure(s.root.bodies, language(), nil)
	all := s.session(Options{Local: local}, maxInstances)
	e := all.evaluator(&module{report: all.report, files: s.root}, nil, instance{})
	settings := e.settings(root.child("fray"))
	return settings, e.sorted()
}
