package snapshot

import (
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Input is what a plan is made of.
type Input struct {
	Desired *schema.Desired // declared and launched
	Doc     *state.Document // recorded; its lineage must be set
	Obs     *plan.Observed
	Now     time.Time
	// FamilyOf is what [Draft.Family] finds in Desired, nil where that is not known.
	FamilyOf func(schema.Address) []*schema.Job
	// Removed are the attributes that plans show of jobs that are deleted, as far as they
	// were asked for. Plans of one stack may share the map; nil: it is not kept.
	Removed map[*schema.Job][]*plan.AttrChange
	// Rest is what the others hold where this is a part of a stack, nil: it is the whole.
	Rest *Rest
}

// Draft is a copy of a Snapshot that one stage changes: what the plan is made on, and
// what was decided so far. Next begins as the document of the Snapshot and is cloned
// before the first change.
type Draft struct {
	Input
	Stack string

	base   *state.Document // of the Snapshot that this is a draft of: its entries are not changed
	shared sharing         // what else is the Snapshot's

	Plan       *plan.Plan
	Next       *state.Document
	found      foundJobs        // in Next, see JobAt
	Acting     map[string]int   // index of the action on a slice
	EditedJobs []schema.Address // entries of next that may differ from those of doc
	Waits      []plan.Waiting

	Listed    map[string]*schema.SliceStatus // every slice of every inventory that belongs to the stack
	Unmanaged []*schema.SliceStatus          // slices that the stack has released
	made      map[string]schema.SliceSpec    // as providers have them, where the owner is another now
	Packed    map[string][]string            // recorded packed slices by the slice on whose host they are, sorted

	// Made when first asked for, see the functions of the same names.
	families     map[schema.Address][]*schema.Job
	newest       *Newest
	Pooled       map[string]*Pool
	Spent        map[schema.ProviderName]plan.Amount
	accelerators map[string]accelerators.Shape
	Money        map[string]*plan.MoneyBudget // by namespace, of those that have one; it does not change
	Incomplete   bool                         // see NeedWhole
}

// sharing is what a draft has of its Snapshot as it is, to be copied before it is changed.
type sharing struct {
	listed    bool // Listed, made and Packed, see own
	changes   bool // of the plan, see MutableChanges
	actions   bool // of the plan, see MutableActions
	ownJobs   bool // Next has a map of jobs of its own, see PutJob
	ownSlices bool // and of slices
}

// newDraft takes in the slices that carry the stack's mark and ignores all others.
func newDraft(in *Input) *Draft {
	doc, obs := in.Doc, in.Obs
	s := &Draft{
		Input: *in, Stack: doc.Stack(), Next: doc, base: doc,
		Plan: &plan.Plan{}, Acting: map[string]int{},
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

// own copies what a draft shares with its Snapshot before it changes that.
func (d *Draft) own() {
	if !d.shared.listed {
		return
	}
	d.shared.listed = false
	d.Listed, d.made, d.Packed = maps.Clone(d.Listed), maps.Clone(d.made), maps.Clone(d.Packed)
	for host, names := range d.Packed {
		d.Packed[host] = slices.Clone(names)
	}
}

// MutableActions returns the actions of the plan, copied at the first call where they are a
// Snapshot's. There is room for as many more.
func (d *Draft) MutableActions() []plan.Action {
	if d.shared.actions {
		d.Plan.Actions, d.shared.actions = append(make([]plan.Action, 0, 2*len(d.Plan.Actions)), d.Plan.Actions...), false
	}
	return d.Plan.Actions
}

// MutableChanges returns the changes of the plan, copied at the first call where they
// are a Snapshot's.
func (d *Draft) MutableChanges() []plan.Change {
	if d.shared.changes {
		d.Plan.Changes, d.shared.changes = slices.Clone(d.Plan.Changes), false
	}
	return d.Plan.Changes
}
