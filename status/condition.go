package status

import (
	"fmt"
	"maps"
	"slices"
	"time"

	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// conditions are how providers stand that are not seen whole: to the process that
// leads, as it has recorded it, and else to this observation.
func (v *View) conditions() map[schema.ProviderName]state.ProviderCondition {
	if !v.led {
		return v.Doc.Conditions
	}
	all := maps.Clone(v.Doc.Conditions)
	if all == nil {
		all = map[schema.ProviderName]state.ProviderCondition{}
	}
	for name, recorded := range v.recorded {
		c := all[name]
		c.Unseen, c.Missing = recorded.Unseen, recorded.Missing
		if len(c.Skipped) == 0 {
			c.Skipped = recorded.Skipped
		}
		all[name] = c
	}
	return all
}

// unseen are the providers that cannot be asked for their slices.
func (v *View) unseen() []schema.ProviderName {
	var names []schema.ProviderName
	for name, c := range v.conditions() {
		if c.Unseen != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// conditionTexts say what of the providers is not seen, since when and why.
func (v *View) conditionTexts() []string {
	var texts []string
	all := v.conditions()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		if c.Unseen != nil {
			texts = append(texts, fmt.Sprintf("Provider %s cannot be seen since %s (%s): %s. What becomes of its slices is not known, and nothing is done about them.",
				name, c.Unseen.Since.Local().Format(time.DateTime), c.Unseen.Kind, c.Unseen.Text))
		}
		if c.Missing != nil {
			texts = append(texts, fmt.Sprintf("Since %s: %s.", c.Missing.Since.Local().Format(time.DateTime), planchange.MissingText(name, c.Missing)))
		}
		for i := range c.Skipped {
			texts = append(texts, fmt.Sprintf("Skipped: %s.", planchange.SkippedText(name, &c.Skipped[i])))
		}
	}
	return texts
}
