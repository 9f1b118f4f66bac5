package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"unique"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// sourceMark accompanies sensitiveMark: it has the strings and numbers of the
// value that was made sensitive, as a list in JSON. What expressions make of the
// value has the same mark, so a text that a value went into knows that value,
// however it was transformed.
type sourceMark struct{ values unique.Handle[string] }

// String keeps the values out of messages.
func (sourceMark) String() string { return "(sensitive values)" }

// GoString keeps the values out of messages.
func (m sourceMark) GoString() string { return m.String() }

// markSensitive returns a value that is hidden wherever it flows.
func markSensitive(v cty.Value) cty.Value {
	v = v.Mark(sensitiveMark{})
	if leaves := leavesOf(v); len(leaves) > 0 {
		v = v.Mark(sourceMark{encodeSources(leaves)})
	}
	return v
}

// unmarkSensitive returns a value that may be shown; what is in it may be
// sensitive.
func unmarkSensitive(v cty.Value) cty.Value {
	v, marks := v.Unmark()
	for mark := range marks {
		switch mark.(type) {
		case sensitiveMark, sourceMark:
			delete(marks, mark)
		}
	}
	return v.WithMarks(marks)
}

// leavesOf are the strings and numbers within a value that are known.
func leavesOf(v cty.Value) []string {
	v, _ = v.UnmarkDeep()
	var leaves []string
	// The callback returns no error, and so does Walk.
	_ = cty.Walk(v, func(_ cty.Path, part cty.Value) (bool, error) {
		if !part.IsKnown() || part.IsNull() || part.Type() != cty.String && part.Type() != cty.Number {
			return true, nil
		}
		if text, err := convert.Convert(part, cty.String); err == nil && text.AsString() != "" {
			leaves = append(leaves, text.AsString())
		}
		return true, nil
	})
	slices.Sort(leaves)
	return slices.Compact(leaves)
}

func encodeSources(values []string) unique.Handle[string] {
	data, err := json.Marshal(values)
	if err != nil {
		data = []byte("[]") // strings encode
	}
	return unique.Make(string(data))
}

func decodeSources(h unique.Handle[string]) []string {
	if h == (unique.Handle[string]{}) {
		return nil
	}
	var values []string
	if json.Unmarshal([]byte(h.Value()), &values) != nil {
		return nil // see encodeSources
	}
	return values
}

// sourcesOf are the sensitive values that went into what has these marks.
func sourcesOf(marks ...cty.ValueMarks) unique.Handle[string] {
	var found []unique.Handle[string]
	for _, some := range marks {
		for mark := range some {
			if source, is := mark.(sourceMark); is && !slices.Contains(found, source.values) {
				found = append(found, source.values)
			}
		}
	}
	switch len(found) {
	case 0:
		return unique.Handle[string]{}
	case 1:
		return found[0]
	}
	var values []string
	for _, source := range found {
		values = append(values, decodeSources(source)...)
	}
	slices.Sort(values)
	return encodeSources(slices.Compact(values))
}

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
		for _, value := range decodeSources(t.sources) {
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
