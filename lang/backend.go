package lang

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/decode"
	langdiagnose "github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/schema"
)

// Settings decodes the fray block alone, for verbs that must work while a
// variable is unset or a job is declared wrongly: only mistakes in that block
// are reported. With local, a state in a bucket is kept here instead, as in
// Options.Local.
func (s *Source) Settings(local bool) (schema.Settings, hcl.Diagnostics) {
	root := configs.Checker{Report: langdiagnose.New()}.Structure(s.Root.Bodies, language.Root(), nil)
	all := eval.NewSession(s.Source, eval.Options{Local: local}, eval.MaxInstances)
	all.NewEvaluator(&configs.Module{Report: all.Report, Files: s.Root}, nil, configs.Instance{})
	settings := decode.New(all).Root().Settings(root.Child("fray"))
	return settings, all.Sorted()
}
