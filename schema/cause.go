package schema

import "github.com/hashicorp/hcl/v2"

// cause is what the language itself must know of a diagnostic later: it is the Extra
// of the diagnostic. It is a closed set; summaries are for people.
type cause string

const (
	causeNotKnown      cause = "not_known"      // a value that must be known is known only after apply
	causeInvalidValue  cause = "invalid_value"  // of a variable
	causeNoReservation cause = "no_reservation" // a request names one that is not there
)

// hasCause reports whether a diagnostic was made for a cause.
func hasCause(d *hcl.Diagnostic, c cause) bool {
	found, ok := hcl.DiagnosticExtra[cause](d)
	return ok && found == c
}

// notKnown reports that an expression has no known value where one is needed.
func (e *evaluator) notKnown(x *expression, ctx *hcl.EvalContext, detail string) {
	d := valueError(x.expr.Range(), x.expr, ctx, "Not known at plan time", detail)
	d.Extra = causeNotKnown
	e.add(d)
}
