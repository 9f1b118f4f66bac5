package change

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

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

// SkippedDrift is what carries the stack's mark at providers and is skipped, as drift.
func SkippedDrift(doc *state.Document) []plan.Drift {
	var all []plan.Drift
	for _, name := range slices.Sorted(maps.Keys(doc.Conditions)) {
		skipped := doc.Conditions[name].Skipped
		for i := range skipped {
			all = append(all, plan.Drift{
				Kind: plan.DriftSliceUnreadable, Slice: skipped[i].Name, Found: SkippedText(name, &skipped[i]), Then: "is neither used nor deleted",
			})
		}
	}
	return all
}
