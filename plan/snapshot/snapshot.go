package snapshot

import (
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Draft is a copy of a Snapshot that one stage changes: what the plan is made on, and
// what was decided so far. Next begins as the document of the Snapshot and is cloned
// before the first change.
type Draft struct {
	Desired *schema.Desired // declared and launched
	Doc     *state.Document // recorded
	Obs     *plan.Observed
	Now     time.Time
	Stack   string

	base *state.Document // of the Snapshot that this is a draft of: its entries are not changed

	Plan       *plan.Plan
	Next       *state.Document
	Acting     map[string]int   // index of the action on a slice
	EditedJobs []schema.Address // entries of next that may differ from those of doc
	Waits      []plan.Waiting

	Listed    map[string]*schema.SliceStatus // every slice of every inventory that belongs to the stack
	Unmanaged []*schema.SliceStatus          // slices that the stack has released
	shared    bool                           // Listed, made and Packed are a Snapshot's, see own
	made      map[string]schema.SliceSpec    // as providers have them, where the owner is another now
	Packed    map[string][]string            // recorded packed slices by the slice on whose host they are, sorted

	// Made when first asked for, see the functions of the same names.
	Families     map[schema.Address][]*schema.Job
	newest       *Newest
	Pooled       map[string]*Pool
	Spent        map[schema.ProviderName]plan.Amount
	accelerators map[string]accelerators.Shape
}

// newDraft takes in the slices that carry the stack's mark and ignores all others.
func newDraft(in *Input) *Draft {
	doc, obs := in.Doc, in.Obs
	s := &Draft{
		Desired: in.Desired, Doc: doc, Next: doc, base: doc, Obs: obs, Now: in.Now,
		Stack:    doc.Stack(),
		Plan:     &plan.Plan{},
		Acting:   map[string]int{},
		Families: in.Families,
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
