package diagnose

import (
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"
)

// Report collects diagnostics, each place and summary once: what is wrong with
// one instance of a job is mostly wrong with all of them.
type Report struct {
	*findings
	module string // the instance that is spoken of, "" outside of modules
}

// findings is what the reports of one evaluation share.
type findings struct {
	Diags    hcl.Diagnostics
	seen     map[reportKey]*hcl.Diagnostic
	canceled func() bool // nil: never
}

type reportKey struct {
	severity hcl.DiagnosticSeverity
	summary  string
	detail   string // of those without a place
	file     string
	start    int
	end      int
}

// New is an empty report.
func New() *Report {
	return &Report{findings: &findings{seen: map[reportKey]*hcl.Diagnostic{}}}
}

// NewUntil is an empty report that has no reader once canceled returns true, which it then
// does for ever. Those that report poll it about once for each block, and then end soon.
func NewUntil(canceled func() bool) *Report {
	r := New()
	r.canceled = canceled
	return r
}

// Canceled reports whether the report has no reader any more.
func (r *Report) Canceled() bool { return r.canceled != nil && r.canceled() }

// Add adds a diagnostic, unless its place and summary are there already.
func (r *Report) Add(d *hcl.Diagnostic) {
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
		r.Diags = append(r.Diags, d)
		return
	}
	if o, ok := first.Extra.(*occurrence); ok && r.module != o.last {
		o.more++
		o.last = r.module
	}
}

// Extend adds diagnostics.
func (r *Report) Extend(diags hcl.Diagnostics) {
	for _, d := range diags {
		r.Add(d)
	}
}

// ErrorAt adds an error that points to rng.
func (r *Report) ErrorAt(rng hcl.Range, summary, detail string) { r.Add(ErrorAt(rng, summary, detail)) }

// WarnAt adds a warning that points to rng.
func (r *Report) WarnAt(rng hcl.Range, summary, detail string) {
	r.Add(&hcl.Diagnostic{Severity: hcl.DiagWarning, Subject: &rng, Summary: summary, Detail: detail})
}

// Sorted returns what was collected by place, those without one first.
func (r *Report) Sorted() hcl.Diagnostics {
	slices.SortStableFunc(r.Diags, func(a, b *hcl.Diagnostic) int {
		if a.Subject == nil || b.Subject == nil {
			return cmp.Compare(placed(a), placed(b))
		}
		return cmp.Or(
			cmp.Compare(a.Subject.Filename, b.Subject.Filename),
			cmp.Compare(a.Subject.Start.Byte, b.Subject.Start.Byte),
			cmp.Compare(a.Summary, b.Summary),
		)
	})
	return r.Diags
}

func placed(d *hcl.Diagnostic) int {
	if d.Subject == nil {
		return 0
	}
	return 1
}

// ErrorAt is an error that points to rng.
func ErrorAt(rng hcl.Range, summary, detail string) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &rng}
}

// WithoutPlace is an error that points nowhere.
func WithoutPlace(summary, detail string) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail}
}
