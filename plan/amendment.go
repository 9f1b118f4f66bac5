package plan

import (
	"github.com/fray-ml/fray/schema"
)

// Amendment is what the moved, import and removed blocks of the files change in
// the state itself (plan/amend). It is done before [Diff], to the document that
// Diff is given; the caller that shows or accepts the plan lists it there.
type Amendment struct {
	Verb AmendVerb      `json:"action"`
	Addr schema.Address `json:"address"` // of a move: the new one
	From schema.Address `json:"previous_address,omitzero"`
	// Slices are those imported, or released.
	Slices []string `json:"slices,omitempty"`
}

// AmendVerb is a closed set of what blocks do to the state.
type AmendVerb string

// The verbs of amendments.
const (
	AmendMove   AmendVerb = "move"   // what has an address has another one now
	AmendImport AmendVerb = "import" // slices that exist are taken up
	AmendForget AmendVerb = "forget" // what runs is released from the state, and runs on
)

// AmendVerbs lists every AmendVerb in the order of a plan's counts.
func AmendVerbs() []AmendVerb { return []AmendVerb{AmendImport, AmendMove, AmendForget} }

// Amended are the numbers of a plan's amendments by verb.
func (p *Plan) Amended() map[AmendVerb]int {
	counts := map[AmendVerb]int{}
	for i := range p.Amendments {
		counts[p.Amendments[i].Verb]++
	}
	return counts
}
