package mark

import (
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/fray-ml/fray/schema"
)

// Sensitive marks values that must not be shown.
type Sensitive struct{}

// IsSensitive reports whether a value or any part of it is sensitive.
func IsSensitive(v cty.Value) bool { return v.HasMarkDeep(Sensitive{}) }

// Ephemeral marks values that must not be kept.
type Ephemeral struct{}

// IsEphemeral reports whether a value or any part of it must not be kept.
func IsEphemeral(v cty.Value) bool { return v.HasMarkDeep(Ephemeral{}) }

// sourceMark accompanies sensitiveMark: it has the strings and numbers of the
// value that was made sensitive, as a list in JSON. What expressions make of the
// value has the same mark, so a text that a value went into knows that value,
// however it was transformed.
type sourceMark struct{ values schema.Sources }

// String keeps the values out of messages.
func (sourceMark) String() string { return "(sensitive values)" }

// GoString keeps the values out of messages.
func (m sourceMark) GoString() string { return m.String() }

// MakeSensitive returns a value that is hidden wherever it flows.
func MakeSensitive(v cty.Value) cty.Value {
	v = v.Mark(Sensitive{})
	if leaves := leavesOf(v); len(leaves) > 0 {
		v = v.Mark(sourceMark{schema.SourcesFrom(leaves)})
	}
	return v
}

// RemoveSensitive returns a value that may be shown; what is in it may be
// sensitive.
func RemoveSensitive(v cty.Value) cty.Value {
	v, marks := v.Unmark()
	for mark := range marks {
		switch mark.(type) {
		case Sensitive, sourceMark:
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

// Sources are the sensitive values that went into what has these marks.
func Sources(marks ...cty.ValueMarks) schema.Sources {
	var found []schema.Sources
	for _, some := range marks {
		for mark := range some {
			if source, is := mark.(sourceMark); is && !slices.Contains(found, source.values) {
				found = append(found, source.values)
			}
		}
	}
	switch len(found) {
	case 0:
		return schema.Sources{}
	case 1:
		return found[0]
	}
	var values []string
	for _, source := range found {
		values = append(values, source.Values()...)
	}
	slices.Sort(values)
	return schema.SourcesFrom(slices.Compact(values))
}
