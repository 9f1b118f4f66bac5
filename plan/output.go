package plan

import (
	"encoding/json"
	"slices"
)

// OutputChange is what becomes of one output: the values that the files give it
// now, beside those that the last apply recorded.
type OutputChange struct {
	Name string `json:"name"`
	// Verb is VerbCreate, VerbUpdate, VerbDelete or VerbNone.
	Verb      Verb            `json:"action"`
	Before    json.RawMessage `json:"before,omitempty"` // nil: none, sensitive, or not known when it was recorded
	After     json.RawMessage `json:"after,omitempty"`  // nil: none, sensitive, or known after apply
	Sensitive bool            `json:"sensitive,omitempty"`
	Unknown   bool            `json:"unknown,omitempty"` // After is known after apply
}

// OutputsChange reports whether any output gets another value.
func (p *Plan) OutputsChange() bool {
	return slices.ContainsFunc(p.Outputs, func(c OutputChange) bool { return c.Verb != VerbNone })
}
