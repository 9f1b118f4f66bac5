package plan

import (
	"github.com/fray-ml/fray/schema"
)

// Refusal is a change that a plan shows and does not make: what it would destroy
// has prevent_destroy. All else that the plan holds is as if nothing else had been
// asked of that thing than what is recorded. Whoever asks for a plan with refusals
// gets none of it; a watch that finds itself with one does the rest.
type Refusal struct {
	Addr   schema.Address `json:"address"`
	Verb   Verb           `json:"action"` // VerbReplace or VerbDelete
	By     Protection     `json:"by"`
	Detail string         `json:"detail"` // what would happen, and what to do to allow it
}

// Protection is where it is said that something must not be destroyed.
type Protection string
