package snapshot

import (
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Snapshot is what one plan is made from, and what it has decided so far. Next
// begins as the given document and is cloned before the first change.
type Snapshot struct {
	Desired *schema.Desired // declared and launched
	Doc     *state.Document // recorded
	Obs     *plan.Observed
	Now     time.Time
	Stack   string

	Plan       *plan.Plan
	Next       *state.Document
	Acting     map[string]int   // index of the action on a slice
	EditedJobs []schema.Address // entries of next that may differ from those of doc
	Idle       []*schema.Job    // jobs that neither run nor have ended
	Waits      []plan.Waiting

	Listed    map[string]*schema.SliceStatus // every slice of every inventory that belongs to the stack
	Unmanaged []*schema.SliceStatus          // slices that the stack has released
	made      map[string]schema.SliceSpec    // as providers have them, where the owner is another now
	Packed    map[string][]string            // recorded packed slices by the slice on whose host they are, sorted

	// Made when first asked for, see the functions of the same names.
	Families     map[schema.Address][]*schema.Job
	newest       *Newest
	Pooled       map[string]*Pool
	Spent        map[schema.ProviderName]plan.Amount
	accelerators map[string]accelerators.Shape
}

// NewSnapshot takes in the slices that carry the stack's mark; other slices are
// none of its business.
func NewSnapshot(desired *schema.Desired, doc *state.Document, obs *plan.Observed, now time.Time) *Snapshot {
	s := &Snapshot{
		Desired: desired, Doc: doc, Next: doc, Obs: obs, Now: now,
		Stack:  doc.Stack(),
		Plan:   &plan.Plan{},
		Acting: map[string]int{},
	}
	listed := 0
	for _, inv := range obs.Inventories {
		listed += len(inv.Slices)
	}
	s.Listed = make(map[string]*schema.SliceStatus, listed)
	for _, inv := range obs.Inventories {
		for i := range inv.Slices {
			if st := &inv.Slices[i]; st.Spec.Stack == s.Stack {
				s.takeIn(st)
			}
		}
	}
	return s
}
