package schema

import (
	"fmt"
	"slices"
)

// sealSources returns the values that went into the secrets of a job, sealed and
// in an order that follows from them; those that are such a secret as a whole
// are left out.
func (j *Job) sealSources(s Sealer) ([]Text, error) {
	whole, sources := map[string]bool{}, map[string]bool{}
	take := func(t Text) {
		if t.form != textSecret {
			return
		}
		whole[t.value] = true
		for _, value := range t.sources.Values() {
			sources[value] = true
		}
	}
	for _, t := range j.Command {
		take(t)
	}
	for _, t := range j.Environment.Env {
		take(t)
	}
	sealed := slices.Clone(j.Sensitive)
	for value := range sources {
		if whole[value] {
			continue
		}
		text, err := Secret(value).Seal(s)
		if err != nil {
			return nil, fmt.Errorf("sensitive value of %s: %w", j.Addr, err)
		}
		sealed = append(sealed, text)
	}
	return sortedTexts(sealed), nil
}

// hasSecret reports whether there is a secret in clear to be sealed.
func (j *Job) hasSecret() bool {
	isSecret := func(t Text) bool { return t.form == textSecret }
	if slices.ContainsFunc(j.Command, isSecret) {
		return true
	}
	for _, t := range j.Environment.Env {
		if isSecret(t) {
			return true
		}
	}
	return false
}

// withoutSensitive is what the job is.
func (j *Job) withoutSensitive() *Job {
	if len(j.Sensitive) == 0 {
		return j
	}
	without := *j
	without.Sensitive = nil
	return &without
}

// Secrets are all sensitive texts of the job: of its command, of its
// environment, and what went into them.
func (j *Job) Secrets() []Text {
	texts := slices.Clone(j.Sensitive)
	for _, t := range j.Command {
		if t.IsSensitive() {
			texts = append(texts, t)
		}
	}
	for _, t := range j.Environment.Env {
		if t.IsSensitive() {
			texts = append(texts, t)
		}
	}
	return sortedTexts(texts)
}

// HasSecrets reports whether any text of the job is sensitive.
func (j *Job) HasSecrets() bool {
	if len(j.Sensitive) > 0 || slices.ContainsFunc(j.Command, Text.IsSensitive) {
		return true
	}
	for _, t := range j.Environment.Env {
		if t.IsSensitive() {
			return true
		}
	}
	return false
}

// JoinTexts are the sealed texts of two lists, each once and in order.
func JoinTexts(a, b []Text) []Text {
	if len(b) == 0 {
		return a
	}
	return sortedTexts(slices.Concat(a, b))
}

// sortedTexts sorts sealed texts and leaves out those that are there twice.
func sortedTexts(texts []Text) []Text {
	slices.SortFunc(texts, func(a, b Text) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	})
	return slices.Compact(texts)
}
