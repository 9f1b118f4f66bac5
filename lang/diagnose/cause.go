package diagnose

import (
	"github.com/hashicorp/hcl/v2"
)

// Cause is what the language itself must know of a diagnostic later: it is the Extra
// of the diagnostic. It is a closed set; summaries are for people.
type Cause string

// The causes.
const (
	NotKnown      Cause = "not_known"      // a value that must be known is known only after apply
	InvalidValue  Cause = "invalid_value"  // of a variable
	NoReservation Cause = "no_reservation" // a request names one that is not there
)

// HasCause reports whether a diagnostic was made for a cause.
func HasCause(d *hcl.Diagnostic, c Cause) bool {
	found, ok := hcl.DiagnosticExtra[Cause](d)
	return ok && found == c
}
