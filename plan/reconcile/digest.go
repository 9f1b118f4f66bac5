package reconcile

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// SameDesired reports whether two configurations ask for the same.
func SameDesired(a, b *schema.Desired) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Proposed is what a configuration would change of a state, whatever the world
// looks like: the changes and blocked changes of a plan, and a digest by which two processes that
// do not share a process tell that they mean the same changes.
func Proposed(desired *schema.Desired, doc *state.Document, now time.Time) (*plan.Plan, string, error) {
	p := Diff(desired, doc, &plan.Observed{}, now)
	made := make([]plan.Change, 0, len(p.Changes))
	for i := range p.Changes {
		if p.Changes[i].Verb != plan.VerbNone {
			made = append(made, p.Changes[i])
		}
	}
	text, err := json.Marshal(made)
	if err != nil {
		return nil, "", err
	}
	return p, plan.HashOf("changes", string(text)), nil
}
