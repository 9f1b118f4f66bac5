package plan

import (
	"encoding/json"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Proposed is what a configuration would change of a state, whatever the world
// looks like: the changes and refusals of a plan, and a digest by which two who
// do not share a process tell that they mean the same changes.
func Proposed(desired *schema.Desired, doc *state.Document, now time.Time) (*Plan, string, error) {
	p := Diff(desired, doc, &Observed{}, now)
	made := make([]Change, 0, len(p.Changes))
	for i := range p.Changes {
		if p.Changes[i].Verb != VerbNone {
			made = append(made, p.Changes[i])
		}
	}
	text, err := json.Marshal(made)
	if err != nil {
		return nil, "", err
	}
	return p, hashOf("changes", string(text)), nil
}
