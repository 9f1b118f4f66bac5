package lifecycle

import (
	"maps"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// massDisappearance is from how many missing slices on, if they are over a third of
// those that live, a disappearance is reported as one of many.
const massDisappearance = 3

// noteConditions records the problems of the providers for readers of the
// state: which one cannot be seen, since when and why, what its list skips, and
// whether many slices disappeared from it at once.
func (d *Slices) noteConditions() {
	var names []schema.ProviderName
	for name := range d.Obs.Inventories {
		names = append(names, name)
	}
	for name := range d.Obs.Unreachable {
		names = append(names, name)
	}
	for name := range d.Doc.Conditions {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was := d.Next.Conditions[name]
		if is := d.conditionOf(name, &was); !sameCondition(&was, &is) {
			d.setCondition(name, &is)
		}
	}
}

// conditionOf is how a provider stands after this look. One that was not asked
// stands as it did.
func (d *Slices) conditionOf(name schema.ProviderName, was *state.ProviderCondition) state.ProviderCondition {
	is := *was
	why, unreachable := d.Obs.Unreachable[name]
	inventory, listed := d.Obs.Inventories[name]
	switch {
	case unreachable && (was.Unseen == nil || was.Unseen.Kind != why.Kind):
		is.Unseen = &state.Unseen{Since: d.Now, Kind: why.Kind, Text: why.Text}
		if was.Unseen != nil {
			is.Unseen.Since = was.Unseen.Since
		}
	case listed:
		is.Unseen, is.Skipped = nil, inventory.Skipped
		is.Missing = d.missingOf(name, was.Missing)
	}
	return is
}

// missingOf is the mass disappearance that a provider's list shows, nil for none. One
// that was noted stays noted as long as one of its slices is in doubt.
func (d *Slices) missingOf(name schema.ProviderName, was *state.Missing) *state.Missing {
	missing := 0
	for _, doubt := range d.Plan.Doubts {
		if s := d.Doc.Slices[doubt.Slice.Name]; doubt.Kind == plan.DoubtAbsent && doubt.Slice.Provider == name && s.Terminating.IsZero() {
			missing++
		}
	}
	switch {
	case missing == 0:
		return nil
	case was != nil && missing <= was.Slices:
		return was
	}
	all := 0
	for _, s := range d.Doc.Slices {
		if s.Spec.Provider == name && s.Spec.On == "" && s.Listed && s.Terminating.IsZero() {
			all++
		}
	}
	if missing < massDisappearance || 3*missing <= all {
		return was
	}
	found := &state.Missing{Since: d.Now, Slices: missing, Of: all}
	if was != nil {
		found.Since = was.Since
	}
	return found
}

// setCondition records how a provider stands.
func (d *Slices) setCondition(name schema.ProviderName, c *state.ProviderCondition) {
	next := d.Mutable()
	next.Conditions = maps.Clone(next.Conditions) // what others hold stays as it is
	if c.Unseen == nil && c.Missing == nil && len(c.Skipped) == 0 {
		delete(next.Conditions, name)
		return
	}
	if next.Conditions == nil {
		next.Conditions = map[schema.ProviderName]state.ProviderCondition{}
	}
	next.Conditions[name] = *c
}

func sameCondition(a, b *state.ProviderCondition) bool {
	return a.Unseen == b.Unseen && a.Missing == b.Missing && slices.Equal(a.Skipped, b.Skipped)
}
