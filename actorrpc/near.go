package actorrpc

import (
	"cmp"
	"slices"

	"github.com/agext/levenshtein"
)

const (
	maxNear    = 3
	maxCompare = 200 // bytes of a name that is compared
)

// near are those of the names that one was perhaps meant to be, the nearest first.
func near(name string, names []string) []string {
	if len(name) > maxCompare {
		return nil
	}
	distances := map[string]int{}
	var found []string
	for _, n := range names {
		if d := levenshtein.Distance(name, n, nil); d <= max(1, len(n)/3) && d < len(n) {
			distances[n] = d
			found = append(found, n)
		}
	}
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(distances[a], distances[b]), cmp.Compare(a, b))
	})
	return found[:min(maxNear, len(found))]
}
