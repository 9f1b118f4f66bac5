package schema

import (
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Backend returns where the state is without evaluating anything else, for
// verbs that must work while a variable is unset or a job is declared wrongly.
// What is not a literal falls back to the default. With local, a state in a
// bucket is kept here instead, as in Options.Local.
func (s *Source) Backend(local bool) (Backend, hcl.Diagnostics) {
	backend := Backend{Kind: BackendLocal, Path: filepath.Join(s.dir, ".fray")}
	for _, body := range s.bodies {
		for _, b := range body.Blocks {
			if b.Type != "fray" {
				continue
			}
			for _, state := range b.Body.Blocks {
				if state.Type != "state" || len(state.Labels) != 1 {
					continue
				}
				switch BackendKind(state.Labels[0]) {
				case BackendLocal:
					if path := literal(state.Body, "path"); path != "" {
						backend.Path = path
						if !filepath.IsAbs(path) {
							backend.Path = filepath.Join(s.dir, path)
						}
					}
				case BackendGCS:
					if !local {
						r := state.DefRange()
						return backend, hcl.Diagnostics{{
							Severity: hcl.DiagError, Subject: &r, Summary: "Not in this version",
							Detail: "This version keeps its state on this machine only: add --local to use the state that --local made here.",
						}}
					}
				}
			}
		}
	}
	return backend, nil
}

func literal(body *hclsyntax.Body, name string) string {
	attr, ok := body.Attributes[name]
	if !ok {
		return ""
	}
	v, diags := attr.Expr.Value(nil)
	if diags.HasErrors() || v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
		return ""
	}
	return v.AsString()
}
