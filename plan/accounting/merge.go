package accounting

import (
	"cmp"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Merge puts intervals in order and drops what stands twice. Intervals of one slice and one
// beginning are the same, of which the one that ends last counts; where intervals of a slice
// overlap otherwise, as after a rollback of the state, the earlier one keeps its time. What it
// returns does not depend on the order of what it is given, and stays the same when it is merged again.
func Merge(intervals []state.UsageInterval) []state.UsageInterval {
	all := slices.Clone(intervals)
	slices.SortFunc(all, compare)
	merged := all[:0]
	for _, i := range all {
		if n := len(merged) - 1; n >= 0 && merged[n].Slice == i.Slice {
			last := &merged[n]
			if !i.To.After(last.To) {
				last.Outcome = cmp.Or(last.Outcome, sameAttempt(last, &i))
				continue
			}
			if i.From.Before(last.To) {
				i.From = last.To
			}
			if continuesAs(last, &i) {
				last.To, last.Outcome = i.To, i.Outcome
				continue
			}
		}
		merged = append(merged, i)
	}
	return slices.Clip(merged)
}

// compare orders intervals by slice and beginning, of equals the longest first. It is total.
func compare(a, b state.UsageInterval) int {
	return cmp.Or(cmp.Compare(a.Slice, b.Slice), a.From.Compare(b.From), b.To.Compare(a.To), cmp.Compare(a.Use, b.Use),
		a.Owner.Compare(b.Owner), cmp.Compare(a.JobID, b.JobID), cmp.Compare(a.Attempt, b.Attempt),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.User, b.User), cmp.Compare(b.Outcome, a.Outcome),
		cmp.Compare(a.Type, b.Type), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.PerHour.Low, b.PerHour.Low), cmp.Compare(a.PerHour.High, b.PerHour.High))
}

func sameAttempt(a, b *state.UsageInterval) schema.TaskState {
	if a.UsageOwner == b.UsageOwner {
		return b.Outcome
	}
	return ""
}

// continuesAs reports whether one interval goes on as another on the same day, so that both
// are one.
func continuesAs(a, b *state.UsageInterval) bool {
	return a.To.Equal(b.From) && a.Outcome == "" && a.Use == b.Use && a.UsageOwner == b.UsageOwner && a.UsageShape == b.UsageShape &&
		a.PerHour == b.PerHour && a.Estimated == b.Estimated && Day(a) == Day(b)
}

// Day is the day of an interval, in UTC: none goes beyond midnight.
func Day(i *state.UsageInterval) string { return i.From.Format("2006-01-02") }
