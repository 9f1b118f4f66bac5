package workspace

import (
	"path/filepath"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/lang/outline"
	"github.com/fray-ml/fray/modules"
)

// check is one run of the checks over a directory.
type check struct {
	*view

	dir      outline.Directory
	needed   map[*outline.Part]bool // nil: all parts
	canceled func() bool            // nil: never
	starts   map[string][]int       // by name of a file: where its parts began when they were parsed
}

// report is the result of a check.
type report struct {
	diags hcl.Diagnostics // with the bytes of the files of today
	files map[string]bool // absolute, that were read
	valid bool            // the files parse
}

// run checks the files as fray validate does.
func (c *check) run() report {
	c.starts = map[string][]int{}
	parser := lang.Parser{Modules: &modules.Installed{}, Files: c.disk, Syntax: c.parse}
	paths := []string{c.shown(c.path)}
	src, diags := parser.Parse(paths)
	if c.outdated() {
		return report{}
	}
	r := report{files: map[string]bool{}, valid: !diags.HasErrors()}
	_, diags = configuration.JudgeParsed(src, diags, paths, configuration.Options{Canceled: c.canceled})
	for name := range src.Files() {
		r.files[c.absolute(name)] = true
	}
	for _, d := range diags {
		r.diags = append(r.diags, c.today(d))
	}
	return r
}

// outdated reports whether the report has no use any more.
func (c *check) outdated() bool { return c.canceled != nil && c.canceled() }

// parse is the body of a file, from parts that are parsed already.
func (c *check) parse(text []byte, shown string) (*hcl.File, hcl.Diagnostics) {
	f := c.dir.File(shown)
	take := func(i int) bool { return (c.needed == nil || c.needed[f.Parts[i].Part]) && !c.outdated() }
	if f == nil && filepath.Ext(shown) == ".hcl" {
		f, take = c.outline(c.absolute(shown), text), func(int) bool { return !c.outdated() }
	}
	if f == nil || c.needed == nil && (f.Broken() || f.HasAttributes()) {
		return load.ParseSyntax(text, shown)
	}
	body, starts := f.Body(take)
	c.starts[f.Name] = starts
	return &hcl.File{Body: body, Bytes: text}, nil
}

// today is a diagnostic whose bytes are those of the file as it is: the parts of a file were
// parsed when they began at other bytes.
func (c *check) today(d *hcl.Diagnostic) *hcl.Diagnostic {
	moved := *d
	for _, rng := range []**hcl.Range{&moved.Subject, &moved.Context} {
		if *rng == nil {
			continue
		}
		starts := c.starts[(*rng).Filename]
		f := c.known(c.absolute((*rng).Filename))
		if f == nil || len(starts) != len(f.Parts) {
			continue // parsed as a whole
		}
		i := f.PartOfLine((*rng).Start.Line)
		at := outline.Shifted(**rng, 0, f.Parts[i].Byte-starts[i])
		*rng = &at
	}
	return &moved
}
