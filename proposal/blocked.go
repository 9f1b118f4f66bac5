package proposal

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// ShowBlocked reports the changes that a lifecycle rule blocks, on the lines that cause it,
// with the remedy; nil if none is blocked.
func ShowBlocked(a *terminal.Terminal, l *configuration.Loaded, p *plan.Plan) error {
	var diags hcl.Diagnostics
	for i := range p.Blocked {
		diags = append(diags, BlockedDiagnostic(l, &p.Blocked[i]))
	}
	return a.Diagnostics(terminal.FilesOf(l.Source), diags)
}

// BlockedDiagnostic is a blocked change on the line that causes it.
func BlockedDiagnostic(l *configuration.Loaded, r *plan.BlockedChange) *hcl.Diagnostic {
	return l.Diagnostic(r.Addr, "lifecycle.prevent_destroy", hcl.DiagError, "Protected by prevent_destroy", r.Detail)
}

// CheckPlaceable reports what could never be placed of an accepted configuration: what
// lifecycles ignore is as recorded there, and may not fit what the files declare.
func CheckPlaceable(l *configuration.Loaded, doc *state.Document) error {
	problems := capacity.Check(&doc.Desired)
	if len(problems) == 0 {
		return nil
	}
	p := &problems[0]
	return fmt.Errorf("%s: %s (its lifecycle ignores changes: what is recorded counts)", p.Addr, p.Detail)
}
