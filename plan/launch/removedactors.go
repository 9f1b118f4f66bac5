package launch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/state"
)

// ForgetActors calls forget with the ids of removed actors that are remembered no longer:
// they went a day ago, or before the newest [MaxRemembered].
func ForgetActors(removed map[string]state.RemovedActors, now time.Time, forget func(id string)) {
	ids := slices.SortedFunc(maps.Keys(removed), func(a, b string) int {
		return cmp.Or(removed[a].At.Compare(removed[b].At), cmp.Compare(a, b))
	})
	for i, id := range ids {
		if len(ids)-i > MaxRemembered || !now.Before(removed[id].At.Add(Retention)) {
			forget(id)
		}
	}
}

// ForgetActorsAt is when [ForgetActors] has something to do, zero: never.
func ForgetActorsAt(removed map[string]state.RemovedActors) time.Time {
	var first time.Time
	for _, r := range removed {
		if first.IsZero() || r.At.Before(first) {
			first = r.At
		}
	}
	if first.IsZero() || len(removed) > MaxRemembered {
		return first
	}
	return first.Add(Retention)
}
