package snapshot

import (
	"maps"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Snapshot is what a plan is made on, with what the stages of the plan have decided so
// far. It does not change: a stage changes a [Snapshot.Draft], and what it has found is
// another Snapshot.
type Snapshot struct {
	of   *Evidence
	last bool // its next draft is all that is made of it
}

// Final returns a Snapshot of which one more Draft is made and nothing else is read: that
// draft takes the Snapshot's entries over, where another copies them before it changes them.
// Of a stack that is planned as a whole there may be a million of them.
func (s Snapshot) Final() Snapshot { return Snapshot{of: s.of, last: true} }

// Take returns what a plan is made on, before anything is decided: readings that need a
// confirmation are in doubt.
func Take(in Input) Snapshot {
	e := &Evidence{Draft: newDraft(&in)}
	findBudgets(e.Draft)
	e.doubtReadings()
	e.notePackedTasks()
	return e.Snapshot()
}

// Snapshot returns what the draft holds. The draft must not be changed any more.
func (d *Evidence) Snapshot() Snapshot { return Snapshot{of: d} }

// Draft returns a copy that one stage may change. What can be found out from the rest,
// such as sums and the rooms on hosts, is found out anew.
func (s Snapshot) Draft() *Evidence {
	d, made := *s.of.Draft, *s.of.Plan
	d.Plan = &made
	if !s.last {
		share(&d)
	}
	d.Spent = nil
	if pools := d.Pooled; pools != nil {
		d.Pooled = make(map[string]*Pool, len(pools))
		for name, p := range pools {
			d.Pooled[name] = p.copied()
		}
	}
	e := *s.of
	e.Draft = &d
	e.doubtNames, e.doubtsSeen = nil, 0
	e.Doubted, e.ReadDirectly = maps.Clone(e.Doubted), maps.Clone(e.ReadDirectly)
	return &e
}

// share has a draft leave what it has as it is: that is a Snapshot's, too.
func share(d *Draft) {
	made := d.Plan
	made.Changes, made.Actions = slices.Clip(made.Changes), slices.Clip(made.Actions)
	made.Blocked, made.Drift, made.Doubts = slices.Clip(made.Blocked), slices.Clip(made.Drift), slices.Clip(made.Doubts)
	d.base, d.shared = d.Next, sharing{listed: true, changes: true, actions: true}
	d.found = foundJobs{}
	d.Acting, d.EditedJobs, d.Waits = maps.Clone(d.Acting), slices.Clip(d.EditedJobs), slices.Clip(d.Waits)
}

// Next is the document with what was decided.
func (s Snapshot) Next() *state.Document { return s.of.Next }

// Edited are the jobs whose records may differ from those of the given document.
func (s Snapshot) Edited() []schema.Address { return s.of.EditedJobs }

// Waits are the addresses that wait, and for what.
func (s Snapshot) Waits() []plan.Waiting { return s.of.Waits }

// HasPacked reports whether there are packed slices, recorded or assigned.
func (s Snapshot) HasPacked() bool { return len(s.of.Packed)+len(s.of.UnrecordedPacked) > 0 }
