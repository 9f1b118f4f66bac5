package workspace

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/outline"
)

// findings are the diagnostics of a directory, each with the part that it is in, so that
// they move with it.
type findings struct {
	parts  map[*outline.Part]hcl.Diagnostics // relative to the part
	syntax map[*outline.Part]hcl.Diagnostics // likewise, of those that do not parse
	others hcl.Diagnostics                   // in other files, or in none
}

func newFindings() *findings {
	return &findings{parts: map[*outline.Part]hcl.Diagnostics{}, syntax: map[*outline.Part]hcl.Diagnostics{}}
}

// replace takes the diagnostics of some parts from a check; of all, if affected is nil.
func (f *findings) replace(dir outline.Directory, diags hcl.Diagnostics, affected map[*outline.Part]bool) {
	if affected == nil {
		f.parts, f.others = map[*outline.Part]hcl.Diagnostics{}, nil
	}
	for p := range affected {
		delete(f.parts, p)
	}
	for _, d := range diags {
		p, ok := partOf(dir, d)
		switch {
		case ok && (affected == nil || affected[p.Part]):
			f.parts[p.Part] = append(f.parts[p.Part], moved(d, 1-p.Line, -p.Byte))
		case !ok && affected == nil:
			f.others = append(f.others, d)
		}
	}
}

// partOf is the part that a diagnostic is in.
func partOf(dir outline.Directory, d *hcl.Diagnostic) (outline.Placed, bool) {
	if d.Subject == nil {
		return outline.Placed{}, false
	}
	f := dir.File(d.Subject.Filename)
	if f == nil || len(f.Parts) == 0 {
		return outline.Placed{}, false
	}
	return f.Parts[f.PartOfLine(d.Subject.Start.Line)], true
}

func moved(d *hcl.Diagnostic, lines, bytes int) *hcl.Diagnostic {
	c := *d
	for _, rng := range []**hcl.Range{&c.Subject, &c.Context} {
		if *rng != nil {
			at := outline.Shifted(**rng, lines, bytes)
			*rng = &at
		}
	}
	return &c
}

// all are the diagnostics of a directory in their places. As with fray validate, errors of
// the syntax stand alone.
func (f *findings) all(dir outline.Directory) hcl.Diagnostics {
	var broken, rest hcl.Diagnostics
	for _, file := range dir.Files {
		for _, p := range file.Parts {
			for _, d := range f.parts[p.Part] {
				rest = append(rest, moved(d, p.Line-1, p.Byte))
			}
			if p.Broken() {
				broken = append(broken, f.errorsOf(file, p)...)
			}
		}
	}
	if len(broken) > 0 {
		return broken
	}
	return append(rest, f.others...)
}

// errorsOf are the errors of the syntax of a part.
func (f *findings) errorsOf(file *outline.File, p outline.Placed) hcl.Diagnostics {
	relative, ok := f.syntax[p.Part]
	if !ok {
		for _, d := range p.Errors(file.Name) {
			relative = append(relative, moved(d, 1-p.Line, -p.Byte))
		}
		f.syntax[p.Part] = relative
	}
	diags := make(hcl.Diagnostics, 0, len(relative))
	for _, d := range relative {
		diags = append(diags, moved(d, p.Line-1, p.Byte))
	}
	return diags
}

// prune forgets the parts that are gone.
func (f *findings) prune(dir outline.Directory) {
	alive := map[*outline.Part]bool{}
	for _, file := range dir.Files {
		for _, p := range file.Parts {
			alive[p.Part] = true
		}
	}
	for _, parts := range []map[*outline.Part]hcl.Diagnostics{f.parts, f.syntax} {
		for p := range parts {
			if !alive[p] {
				delete(parts, p)
			}
		}
	}
}
