package proposal

import (
	"slices"

	"github.com/fray-ml/fray/agent/mask"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/schema"
)

// Hide returns a function that hides in a text for people, such as the message of a policy,
// the sensitive values of what is declared and recorded. It finds a value also where it is
// encoded or a part of a word, and none that is shorter than mask.Least.
func Hide(l *configuration.Loaded) func(string) string {
	var texts []schema.Text
	for i := range l.Desired.Jobs {
		texts = append(texts, l.Desired.Jobs[i].Secrets()...)
	}
	if l.Config != nil {
		for i := range l.Config.Desired.Jobs { // before they are sealed
			texts = append(texts, l.Config.Desired.Jobs[i].Secrets()...)
		}
		for _, o := range l.Config.Outputs {
			texts = append(texts, o.Secret)
		}
	}
	if l.Document != nil {
		for _, j := range l.Document.Jobs {
			if j.Spec != nil {
				texts = append(texts, j.Spec.Secrets()...)
			}
		}
		for _, o := range l.Document.Outputs {
			texts = append(texts, o.Secret)
		}
	}
	var values []string
	for _, text := range texts {
		if !text.IsSensitive() {
			continue
		}
		if value, err := text.Reveal(l.Sealer); err == nil { // one of a key that is not there cannot be in a text either
			values = append(values, value)
		}
	}
	slices.Sort(values)
	set := mask.New(slices.Compact(values))
	return set.String
}
