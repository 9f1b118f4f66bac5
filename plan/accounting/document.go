package accounting

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/state"
)

// OfDocument are the intervals of a document that a ledger may not have: those that are
// closed, and those that are open, until a time. From the moment on at which the document was
// brought up to date last, they are estimated, unless that is about as long ago as it always is.
func OfDocument(doc *state.Document, until time.Time) []state.UsageInterval {
	if doc.Metering == nil {
		return nil
	}
	m := *doc.Metering
	all := slices.Clone(m.Closed)
	until = later(exact(until), m.At)
	metered := &meter{now: until, was: &m, next: &state.Metering{}}
	for _, open := range m.Open {
		i := *open
		if i.UnseenSince.IsZero() && until.Sub(m.At) > Gap {
			i.UnseenSince = later(m.At, i.From)
		}
		metered.end(i, until, "")
	}
	return append(all, metered.next.Closed...)
}

// Restored is the metering of a state that has none, as one that was made again: what the
// intervals of a ledger, merged, say that the month of a time has cost so far. It is nil where
// they say nothing.
func Restored(intervals []state.UsageInterval, now time.Time) *state.Metering {
	m := &state.Metering{Month: MonthName(now)}
	for k := range intervals {
		i := &intervals[k]
		if MonthName(i.From) != m.Month {
			continue
		}
		if m.Spent == nil {
			m.Spent = map[string]state.MonthSpend{}
		}
		s := m.Spent[i.Namespace]
		addCost(&s.Closed, &s.ClosedUnpriced, i)
		s.Used, s.Unpriced = s.Closed, s.ClosedUnpriced
		m.Spent[i.Namespace] = s
		m.At = later(m.At, i.To)
	}
	if m.Spent == nil {
		return nil
	}
	return m
}
