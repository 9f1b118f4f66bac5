package lang

import (
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/decode"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/lang/lint"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/schema"
)

// Source is a parsed, not yet evaluated configuration. It may be evaluated any
// number of times, with different options.
type Source struct {
	*load.Source
}

// Parser is how Parse finds modules that are archives. The zero Parser finds
// those in directories only.
type Parser struct {
	Modules load.Installer
	Files   files.System // nil: DiskFiles
	Syntax  load.Syntax  // nil: load.ParseSyntax
}

// Parse reads the *.hcl files of directories (not of those below them) and
// single files; no path at all means the current directory. All syntax errors
// are collected. The Source is never nil: its Files serve the diagnostics.
func Parse(paths []string) (*Source, hcl.Diagnostics) { return Parser{}.Parse(paths) }

// Parse is [Parse].
func (p Parser) Parse(paths []string) (*Source, hcl.Diagnostics) {
	files, diags := load.Parser(p).Parse(paths)
	return &Source{files}, diags
}

// Reads follows the references of the files. It evaluates nothing, so that it takes
// the time of the files' size, however many instances they make.
func (s *Source) Reads() *configs.Reads { return configs.ReadsOf(s.Source) }

// Evaluate expands a configuration: variables, references, instances,
// defaults. Every mistake is collected; with an error among them the Config is
// nil. Instances of one job may share slices and maps: copy before changing.
func (s *Source) Evaluate(opts eval.Options) (*schema.Config, hcl.Diagnostics) {
	return s.evaluate(opts, eval.MaxInstances)
}

func (s *Source) evaluate(opts eval.Options, maxInstances int) (*schema.Config, hcl.Diagnostics) {
	_, config, diags := evaluateAll(eval.NewSession(s.Source, opts, maxInstances))
	return config, diags
}

// evaluateAll evaluates and decodes a configuration, and warns of what is unwise
// in one that is right. Without decoding nothing was evaluated; without Config there
// are errors.
func evaluateAll(s *eval.Session) (*decode.Decoding, *schema.Config, hcl.Diagnostics) {
	if d := s.Evaluate(); d != nil {
		return nil, nil, hcl.Diagnostics{d}
	}
	whole, config := decode.Config(s)
	if s.Canceled() {
		return nil, nil, hcl.Diagnostics{eval.CanceledError()}
	}
	if s.Diags.HasErrors() {
		return whole, nil, s.Sorted()
	}
	lint.Check(s, config)
	if s.Canceled() {
		return nil, nil, hcl.Diagnostics{eval.CanceledError()}
	}
	return whole, config, s.Sorted()
}

// Scope evaluates a configuration as Evaluate does. Where it has mistakes, the
// Scope knows what has a value in spite of them.
func (s *Source) Scope(opts eval.Options) (*eval.Scope, hcl.Diagnostics) {
	all := eval.NewSession(s.Source, opts, eval.MaxInstances)
	whole, config, diags := evaluateAll(all)
	if whole == nil { // not even begun
		return s.Bare(), diags
	}
	return eval.NewScope(all, config), slices.Clone(diags)
}

// Bare is the Scope of a configuration in which nothing is declared: it knows
// functions and paths.
func (s *Source) Bare() *eval.Scope {
	dir := s.Dir()
	if dir == "" { // what was named is not there
		dir, _ = files.Disk{}.WorkDir()
	}
	empty := &Source{load.Empty(dir)}
	scope, _ := empty.Scope(eval.Options{})
	return scope
}
