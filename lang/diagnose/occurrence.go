package diagnose

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
)

// occurrence is the extra of a diagnostic that stands in a module: in which
// instances of it. What else is known of the diagnostic is in extra.
type occurrence struct {
	module string // the first
	last   string // the last one counted
	more   int    // than the first
	extra  any
}

var _ hcl.DiagnosticExtraUnwrapper = (*occurrence)(nil)

// UnwrapDiagnosticExtra returns what else is known of the diagnostic.
func (o *occurrence) UnwrapDiagnosticExtra() any { return o.extra }

// ModuleOf is the instance of a module that a diagnostic is about; "" for one of the
// configuration itself, and for one of a module's files in all of its instances.
func ModuleOf(d *hcl.Diagnostic) string {
	o, ok := hcl.DiagnosticExtra[*occurrence](d)
	switch {
	case !ok:
		return ""
	case o.more == 1:
		return o.module + " and another one"
	case o.more > 1:
		return fmt.Sprintf("%s and %d more", o.module, o.more)
	}
	return o.module
}

// In is a report that collects into r the diagnostics of an instance of a module.
func (r *Report) In(module string) *Report { return &Report{findings: r.findings, module: module} }
