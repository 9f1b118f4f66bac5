package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// massDisappearance is from how many missing slices on, if they are over a third of
// those that live, a disappearance is reported as one of many.
const massDisappearance = 3

// noteConditions records what is amiss with the providers, for those who read the
// state: which one cannot be seen, since when and why, what its list skips, and
// whether many slices disappeared from it at once.
func (d *differ) noteConditions() {
	var names []schema.ProviderName
	for name := range d.obs.Inventories {
		names = append(names, name)
	}
	for name := range d.obs.Unreachable {
		names = append(names, name)
	}
	for name := range d.doc.Conditions {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was := d.next.Conditions[name]
		if is := d.conditionOf(name, &was); !sameCondition(&was, &is) {
			d.setCondition(name, &is)
		}
	}
}

// conditionOf is how a provider stands after this look. One that was not asked
// stands as it did.
func (d *differ) conditionOf(name schema.ProviderName, was *state.ProviderCondition) state.ProviderCondition {
	is := *was
	why, unreachable := d.obs.Unreachable[name]
	inventory, listed := d.obs.Inventories[name]
	switch {
	case unreachable && (was.Unseen == nil || was.Unseen.Kind != why.Kind):
		is.Unseen = &state.Unseen{Since: d.now, Kind: why.Kind, Text: why.Text}
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
func (d *differ) missingOf(name schema.ProviderName, was *state.Missing) *state.Missing {
	missing := 0
	for _, doubt := range d.plan.Doubts {
		if s := d.doc.Slices[doubt.Slice.Name]; doubt.Kind == DoubtAbsent && doubt.Slice.Provider == name && s.Terminating.IsZero() {
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
	for _, s := range d.doc.Slices {
		if s.Spec.Provider == name && s.Spec.On == "" && s.Seen && s.Terminating.IsZero() {
			all++
		}
	}
	if missing < massDisappearance || 3*missing <= all {
		return was
	}
	found := &state.Missing{Since: d.now, Slices: missing, Of: all}
	if was != nil {
		found.Since = was.Since
	}
	return found
}

// setCondition records how a provider stands.
func (d *differ) setCondition(name schema.ProviderName, c *state.ProviderCondition) {
	next := d.mutable()
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

// ConditionEvents are what changed about providers, in the order of their names.
func ConditionEvents(before, after map[schema.ProviderName]state.ProviderCondition) []string {
	var texts []string
	names := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, is := before[name], after[name]
		texts = append(texts, unseenEvents(name, was.Unseen, is.Unseen)...)
		if is.Missing != nil && is.Missing != was.Missing {
			texts = append(texts, MissingText(name, is.Missing))
		}
		if is.Missing == nil && was.Missing != nil {
			texts = append(texts, fmt.Sprintf("no slice of provider %s is missing from its list without a confirmation any more", name))
		}
		for _, item := range is.Skipped {
			if !slices.Contains(was.Skipped, item) {
				texts = append(texts, SkippedText(name, &item))
			}
		}
	}
	return texts
}

func unseenEvents(name schema.ProviderName, was, is *state.Unseen) []string {
	switch {
	case is != nil && is != was:
		return []string{UnseenText(name, is)}
	case is == nil && was != nil:
		return []string{fmt.Sprintf("provider %s can be seen again", name)}
	}
	return nil
}

// UnseenText says that a provider cannot be seen, without since when.
func UnseenText(name schema.ProviderName, u *state.Unseen) string {
	return fmt.Sprintf("provider %s cannot be seen: %s", name, u.Text)
}

// MissingText says how many slices are missing from a provider's list.
func MissingText(name schema.ProviderName, m *state.Missing) string {
	return fmt.Sprintf("%d of %d slices are missing from the list of provider %s at once; nothing is done about them before each is confirmed to be gone", m.Slices, m.Of, name)
}

// SkippedText says what item of a provider's list is skipped.
func SkippedText(name schema.ProviderName, item *schema.SkippedItem) string {
	where := item.Name
	if item.Zone != "" {
		where += " in " + item.Zone
	}
	return fmt.Sprintf("provider %s lists %s, which is skipped: %s", name, where, item.Text)
}

func sameCondition(a, b *state.ProviderCondition) bool {
	return a.Unseen == b.Unseen && a.Missing == b.Missing && slices.Equal(a.Skipped, b.Skipped)
}
