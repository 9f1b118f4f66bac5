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
