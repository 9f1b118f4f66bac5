package configuration

import (
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/state"
)

// Moved is the state with what the files declare as moved, for the values that
// they read of it under the new names.
func (l *Loaded) Moved(doc *state.Document) *state.Document {
	blocks := amend.Blocks{Config: l.Config}
	next, _, diags := blocks.Relocate(doc)
	if diags.HasErrors() {
		return doc // reported when it is planned
	}
	return next
}
