package configuration

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
)

// Judge evaluates the files alone, as far as that goes without values for all
// variables and without data. Without errors cfg is set.
func Judge(paths []string, flags Options) (*Loaded, hcl.Diagnostics) {
	src, diags := Parse(paths)
	return JudgeParsed(src, diags, paths, flags)
}

// JudgeParsed is Judge for files that are parsed, with what was found doing so.
func JudgeParsed(src *lang.Source, diags hcl.Diagnostics, paths []string, flags Options) (*Loaded, hcl.Diagnostics) {
	l := &Loaded{Source: src, Paths: paths}
	if diags.HasErrors() {
		return l, diags
	}
	at, err := stack.SiteOf(src.Dir(), schema.Settings{}, flags.Workspace)
	if err != nil {
		return l, append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Workspace cannot be used", Detail: DetailOf(err)})
	}
	l.Options = flags.InWorkspace(at.Workspace)
	l.Options.Partial = true
	cfg, more := src.Evaluate(l.Options)
	diags = append(diags, more...)
	if diags.HasErrors() {
		return l, diags
	}
	l.Config = cfg
	if !cfg.Partial {
		diags = append(diags, l.Unfit()...)
	}
	return l, Dedupe(diags)
}

// Unfit is what is wrong with a configuration as a whole.
func (l *Loaded) Unfit() hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, p := range capacity.Check(&l.Config.Desired) {
		diags = append(diags, l.Diagnostic(p.Addr, p.Attribute, hcl.DiagError, p.Summary, p.Detail))
	}
	diags = append(diags, amend.Check(l.Config)...)
	if d := l.unfitEncryption(); d != nil {
		diags = append(diags, d)
	}
	return diags
}
