package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// report collects diagnostics, each place and summary once: what is wrong with
// one instance of a job is mostly wrong with all of them.
type report struct {
	*findings
	module string // the instance that is spoken of, "" outside of modules
}

// findings is what the reports of one evaluation share.
type findings struct {
	diags hcl.Diagnostics
	seen  map[reportKey]*hcl.Diagnostic
}

type reportKey struct {
	severity hcl.DiagnosticSeverity
	summary  string
	detail   string // of those without a place
	file     string
	start    int
	end      int
}

func newReport() *report {
	return &report{findings: &findings{seen: map[reportKey]*hcl.Diagnostic{}}}
}

func (r *report) add(d *hcl.Diagnostic) {
	key := reportKey{severity: d.Severity, summary: d.Summary}
	if d.Subject != nil {
		key.file, key.start, key.end = d.Subject.Filename, d.Subject.Start.Byte, d.Subject.End.Byte
	} else {
		key.detail = d.Detail
	}
	first := r.seen[key]
	if first == nil {
		if r.module != "" {
			d.Extra = &occurrence{module: r.module, last: r.module, extra: d.Extra}
		}
		r.seen[key] = d
		r.diags = append(r.diags, d)
		return
	}
	if o, ok := first.Extra.(*occurrence); ok && r.module != o.last {
		o.more++
		o.last = r.module
	}
}

func (r *report) extend(diags hcl.Diagnostics) {
	for _, d := range diags {
		r.add(d)
	}
}

// errorAt adds an error that points to rng.
func (r *report) errorAt(rng hcl.Range, summary, detail string) { r.add(errorAt(rng, summary, detail)) }

// sorted returns what was collected by place, those without one first.
func (r *report) sorted() hcl.Diagnostics {
	slices.SortStableFunc(r.diags, func(a, b *hcl.Diagnostic) int {
		if a.Subject == nil || b.Subject == nil {
			return cmp.Compare(placed(a), placed(b))
		}
		return cmp.Or(
			cmp.Compare(a.Subject.Filename, b.Subject.Filename),
			cmp.Compare(a.Subject.Start.Byte, b.Subject.Start.Byte),
			cmp.Compare(a.Summary, b.Summary),
		)
	})
	return r.diags
}

func placed(d *hcl.Diagnostic) int {
	if d.Subject == nil {
		return 0
	}
	return 1
}

func errorAt(rng hcl.Range, summary, detail string) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &rng}
}

func errorWithoutPlace(summary, detail string) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail}
}

// didYouMean is a sentence that suggests the nearest candidate, or lists them
// all where none is near and they are few.
func didYouMean(name string, candidates []string) string {
	if near := Nearest(name, candidates); near != "" && name != "" {
		return fmt.Sprintf("Did you mean %q?", near)
	}
	switch {
	case len(candidates) == 0:
		return "None is declared."
	case len(candidates) == 1:
		return fmt.Sprintf("There is only %s.", candidates[0])
	case len(candidates) <= 12:
		sorted := slices.Sorted(slices.Values(candidates))
		return "There are " + strings.Join(slices.Compact(sorted), ", ") + "."
	}
	return ""
}

// article puts "a" or "an" before a word.
func article(word string) string {
	if word != "" && strings.ContainsRune("aeiou", rune(word[0])) && word != "uv" && word != "user" {
		return "an " + word
	}
	return "a " + word
}

// place is a range in words, for a diagnostic that names a second one.
func place(rng hcl.Range) string { return fmt.Sprintf("%s line %d", rng.Filename, rng.Start.Line) }
