package pipeline

import (
	"bytes"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/format"
	"github.com/fray-ml/fray/review"
)

// problems collects what is wrong with the files, each once.
type problems struct {
	env   Environment
	found []review.Problem
}

func (p *problems) add(problem review.Problem) {
	if !slices.Contains(p.found, problem) {
		p.found = append(p.found, problem)
	}
}

// diagnosed takes in diagnostics.
func (p *problems) diagnosed(_ map[string]*hcl.File, diags hcl.Diagnostics) {
	for _, d := range diags {
		problem := review.Problem{Severity: review.SeverityError, Title: p.env.Masked(d.Summary), Text: p.env.Masked(d.Detail)}
		if d.Severity == hcl.DiagWarning {
			problem.Severity = review.SeverityWarning
		}
		if s := d.Subject; s != nil {
			problem.File = p.env.within(s.Filename)
			problem.Line, problem.EndLine, problem.Column, problem.EndLast = s.Start.Line, s.End.Line, s.Start.Column, s.End.Column
			if s.End.Column == 1 && s.End.Line > s.Start.Line { // the range ends with the line before
				problem.EndLine, problem.EndLast = s.End.Line-1, 0
			}
		}
		p.add(problem)
	}
}

// unformatted are the files of the configuration's own directory that are not in the
// canonical style, each with the first line that differs.
func unformatted(src *lang.Source) hcl.Diagnostics {
	var found hcl.Diagnostics
	for name, file := range src.Files() {
		if ext := filepath.Ext(name); ext != ".hcl" && ext != ".frayvars" {
			continue
		}
		if abs, err := filepath.Abs(name); err != nil || filepath.Dir(abs) != src.Dir() {
			continue
		}
		formatted, diags := format.Source(file.Bytes, name)
		if diags.HasErrors() || bytes.Equal(formatted, file.Bytes) {
			continue
		}
		at := firstDifference(file.Bytes, formatted)
		at.Filename = name
		found = append(found, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Not in the canonical style", Detail: "Run fray fmt, which rewrites the file.", Subject: &at,
		})
	}
	return found
}

// firstDifference is the first line of before that after does not have.
func firstDifference(before, after []byte) hcl.Range {
	was, is := bytes.Split(before, []byte("\n")), bytes.Split(after, []byte("\n"))
	line, begin := 0, 0
	for line < len(was)-1 && line < len(is) && bytes.Equal(was[line], is[line]) {
		begin += len(was[line]) + 1
		line++
	}
	n := len(was[line])
	return hcl.Range{
		Start: hcl.Pos{Line: line + 1, Column: 1, Byte: begin},
		End:   hcl.Pos{Line: line + 1, Column: utf8.RuneCount(was[line]) + 1, Byte: begin + n},
	}
}
