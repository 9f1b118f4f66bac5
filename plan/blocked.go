package plan

import (
	"github.com/fray-ml/fray/schema"
)

// BlockedChange is a change that a plan shows and does not make: what it would destroy
// has prevent_destroy. All else that the plan holds is as if nothing else had been
// asked of that address than what is recorded. An apply whose plan has blocked changes
// makes none of its changes; a watch makes the others.
type BlockedChange struct {
	Addr   schema.Address `json:"address"`
	Verb   Verb           `json:"action"` // VerbReplace or VerbDelete
	By     Protection     `json:"by"`
	Detail string         `json:"detail"` // what would happen, and what to do to allow it
}

// Protection is where it is said that something must not be destroyed.
type Protection string
