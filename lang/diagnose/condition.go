package diagnose

// FailedCondition is the Extra of a diagnostic about a validation, condition or
// assertion that does not hold.
type FailedCondition struct {
	Of string // "var.NAME", "check.NAME", "output.NAME" or an address, with its module

	Variable bool // it is a validation of a variable
}
