package incremental

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/state"
)

// Folded is [capacity.Folded]. Where doc is what the last plan led to, the next call of
// Diff looks at the jobs of that slice and at what goes on: no other job's lot depends on
// the record of the slice, and what zone health rejects concerns jobs that wait for slices.
func (p *Planner) Folded(doc *state.Document, a plan.Action, f *capacity.Failure, now time.Time) *state.Document {
	next := capacity.Folded(doc, a, f, now)
	p.note(doc, next, edited{slices: []string{a.Slice.Name}})
	if next == doc || doc != p.last || p.last == nil {
		return next
	}
	name := a.Slice.Name
	if s := p.focus.steady[name]; s != nil && s.job == ofNoJob {
		p.unsettle(s.pool)
	} else if s != nil {
		p.decideAgain(s.job)
	}
	for i := range p.conditions {
		has := func(s observedSlice) bool { return s.name == name }
		if !p.focus.on && p.conditions[i] == steady && slices.ContainsFunc(p.seen[i], has) {
			p.decideAgain(i)
		}
	}
	if i, isJob := p.index[doc.Slices[name].Spec.Owner]; isJob {
		p.decideAgain(i)
	}
	p.last = next
	return next
}

// decideAgain makes a job dirty before the next plan begins.
func (p *Planner) decideAgain(i int) {
	if p.conditions[i] == dirty {
		return
	}
	p.markDirty(i)
	at, _ := slices.BinarySearch(p.dirty, i)
	p.dirty = slices.Insert(slices.Clip(p.dirty), at, i)
}
