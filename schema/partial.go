package schema

import "github.com/hashicorp/hcl/v2"

// With Options.Partial the files are judged without the values they will get:
// what follows from a value that is not known is neither expanded nor reported.

// add reports a diagnostic, unless it only says that a value is not known yet.
func (e *evaluator) add(d *hcl.Diagnostic) {
	if e.opts.Partial && hasCause(d, causeNotKnown) {
		e.partial = true
		return
	}
	e.report.add(d)
}
