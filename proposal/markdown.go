package proposal

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/markdown"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/terminal"
)

// Markdown is a plan for a review. Policies, and where the files come from, are left to the
// caller.
func Markdown(l *configuration.Loaded, p *plan.Plan) markdown.Input {
	return markdown.Input{
		Header: markdown.Header{
			Workspace: l.Stack.Workspace, FrayVersion: release.Version(), Serial: l.Document.Serial, Revision: l.Document.Revision,
		},
		Plan: p, Problems: Warnings(l),
	}
}

// ShowMarkdown prints a plan as Markdown.
func ShowMarkdown(a *terminal.Terminal, l *configuration.Loaded, p *plan.Plan, limit markdown.Limit) error {
	_, err := fmt.Fprint(a.Stdout, markdown.Render(Markdown(l, p), limit))
	return err
}

// Warnings are those about the files of a plan.
func Warnings(l *configuration.Loaded) []markdown.Problem {
	if l.Source == nil {
		return nil
	}
	return Problems(l.Source.Dir(), l.Warnings)
}

// Problems are diagnostics for a review, errors first, with the names of files below dir.
func Problems(dir string, diags hcl.Diagnostics) []markdown.Problem {
	var errors, warnings []markdown.Problem
	for _, d := range diags {
		p := markdown.Problem{Severity: markdown.SeverityWarn, Summary: d.Summary, Detail: d.Detail}
		if d.Subject != nil {
			p.File, p.Line = nameBelow(dir, d.Subject.Filename), d.Subject.Start.Line
		}
		if d.Severity == hcl.DiagError {
			p.Severity = markdown.SeverityDeny
			errors = append(errors, p)
		} else {
			warnings = append(warnings, p)
		}
	}
	return append(errors, warnings...)
}

// nameBelow is a file as it is named from a directory; of one outside only its own name.
func nameBelow(dir, file string) string {
	base, errBase := filepath.Abs(dir)
	path, errPath := filepath.Abs(file)
	if errBase == nil && errPath == nil {
		if name, err := filepath.Rel(base, path); err == nil && !strings.HasPrefix(name, "..") {
			return filepath.ToSlash(name)
		}
	}
	return filepath.Base(file)
}
