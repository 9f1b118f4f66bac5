package mark

import (
	"maps"
	"slices"
)

// Relabel returns labels with those of was replaced by those of want; all others stay.
func Relabel(labels, was, want map[string]string) map[string]string {
	next := maps.Clone(labels)
	for key := range was {
		delete(next, key)
	}
	maps.Copy(next, want)
	return next
}

// Retag keeps the order of the tags that stay.
func Retag(tags, was, want []string) []string {
	next := slices.DeleteFunc(slices.Clone(tags), func(tag string) bool {
		return slices.Contains(was, tag) && !slices.Contains(want, tag)
	})
	for _, tag := range want {
		if !slices.Contains(next, tag) {
			next = append(next, tag)
		}
	}
	return next
}
