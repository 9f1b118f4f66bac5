package rpcerror

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/agext/levenshtein"
)

const (
	maxSuggestions = 3
	maxCompare     = 200 // bytes of a name that is compared
)

// Suggest is those of the names that one was perhaps meant to be, the nearest first:
// within a third of their length, and three at most.
func Suggest(name string, names []string) []string {
	if len(name) > maxCompare {
		return nil
	}
	distances := map[string]int{}
	var found []string
	for _, n := range names {
		d := levenshtein.Distance(name, n, nil)
		if size := utf8.RuneCountInString(n); d <= max(1, size/3) && d < size {
			distances[n] = d
			found = append(found, n)
		}
	}
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(distances[a], distances[b]), cmp.Compare(a, b))
	})
	return found[:min(maxSuggestions, len(found))]
}
