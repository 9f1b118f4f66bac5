package controller

import (
	"context"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// desk is where the services meet the loop: they look at what it last saw, and
// hand it changes of the state, which it makes between two steps.
type desk interface {
	// View is what the last step left. It does not change afterwards.
	View() *View
	// Changed is closed when there is another View.
	Changed() <-chan struct{}
	// Do has the loop change the state and returns once that is saved. A change
	// returns the document that takes the place of the one it is given, which it
	// must not change, or an error, which is returned and changes nothing; the
	// same document is no change. It may be called again with a newer document.
	Do(ctx context.Context, change Change) error
}

// Change makes one document of another, see desk. It must be pure.
type Change func(doc *state.Document, now time.Time) (*state.Document, error)

// View is the stack as one step left it. Nothing in it may be changed.
type View struct {
	Doc *state.Document
	// Wanted is what is declared and what was launched, as the plan sees it.
	Wanted *schema.Desired
	Plan   *plan.Plan
	// Hosts are the reports that the step saw, by slice and in host order.
	Hosts    map[string][]plan.Host
	Attended time.Duration // see plan.Observed
	// Inventories and Unreachable are what the providers said to the step.
	Inventories map[schema.ProviderName]schema.Inventory
	Unreachable map[schema.ProviderName]plan.Unreachable
	Lease       store.Lease
	At          time.Time
	Took        time.Duration // the step
}
