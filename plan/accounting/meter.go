package accounting

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Limits of what is exact.
const (
	// Heartbeat is how often a controller brings the metering up to date at least while slices
	// are there.
	Heartbeat = 5 * time.Minute
	// Gap is for how long a slice may have been unseen before it was found to be gone, so that it
	// is counted as seen until then: longer than a list takes to be believed.
	Gap = 2 * Heartbeat
)

// Input is what the metering is brought up to date with.
type Input struct {
	Doc *state.Document
	Now time.Time
	// Since is what has changed since the metering of a document was brought up to date; nil: not known.
	Since *state.Edits
	// Listed reports whether a provider lists a slice at the moment, nil: all are.
	Listed func(slice string) bool
	// Unlisted are the recorded slices that are not listed, nil: they are to be found by Listed.
	Unlisted map[string]bool
	// Known is what is known of the open intervals of Doc; nil: nothing. It is brought up to date.
	Known *Known
	// LastHeard is when a host of a slice last reported, by the store's clock, zero: not known.
	// nil: nothing is known of any.
	LastHeard func(slice string) time.Time
}

// Meter returns the metering of a document at a time. What a slice was used for up to now is
// what the former metering says; from now on it is what the document says. Time never goes
// back: a clock that does is taken to stand still.
func Meter(in Input) *state.Metering {
	was := in.Doc.Metering
	if was == nil {
		was = &state.Metering{}
	}
	m := &meter{Input: in, was: was, now: exact(in.Now)}
	if m.now.Before(was.At) {
		m.now = was.At
	}
	m.month = MonthOf(m.now)
	y, month, d := m.now.Date()
	m.midnight = time.Date(y, month, d, 0, 0, 0, 0, time.UTC)
	m.next = &state.Metering{
		At: m.now, Month: MonthName(m.now), Closed: slices.Clip(was.Closed),
	}
	m.declared = declaredNamespaces(in.Doc)
	gone, turned := m.changed()
	slices.Sort(gone)
	for _, name := range gone {
		open := *was.Open[name]
		m.unsee(&open)
		m.end(open, m.now, m.outcome(&open))
	}
	slices.SortFunc(turned, func(a, b *state.Slice) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
	for _, s := range turned {
		m.slice(s)
	}
	m.remember()
	m.conclude()
	return m.next
}

type meter struct {
	Input
	was, next *state.Metering
	now       time.Time
	month     time.Time             // the first instant of the month of now
	midnight  time.Time             // the last one
	holders   map[string]*state.Job // see holder; nil: they were not asked for
	touched   map[string]bool       // slices whose intervals may have changed; nil: all
	declared  map[string]bool
}

// exact is a time as intervals have it.
func exact(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// MonthOf is the first instant of the calendar month of a time, in UTC.
func MonthOf(at time.Time) time.Time {
	y, m, _ := at.UTC().Date()
	return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
}

// MonthName is how a month is named in a document.
func MonthName(at time.Time) string { return at.UTC().Format("2006-01") }

// slice brings one that is paid for up to date.
func (m *meter) slice(s *state.Slice) {
	is := m.intervalOf(s)
	seen := m.Listed == nil || m.Listed(is.Slice)
	was := m.was.Open[is.Slice]
	if was == nil {
		m.begin(is, s)
		return
	}
	open := *was
	if seen {
		open.UnseenSince = time.Time{}
	} else {
		m.unsee(&open)
	}
	if continues(&open, &is) {
		m.goOn(open)
		return
	}
	at := m.turn(&open, s, &is)
	m.end(open, at, m.outcome(&open))
	is.From = at
	if !seen {
		is.UnseenSince = later(open.UnseenSince, at)
	}
	m.goOn(is)
}

// unsee notes that a slice is not listed, since it was metered last if not for longer.
func (m *meter) unsee(open *state.UsageInterval) {
	if open.UnseenSince.IsZero() {
		open.UnseenSince = later(m.was.At, open.From)
	}
}

// begin opens the interval of a slice that was not metered: it was there since it was first
// listed, and at least since this month began. Where that is some time ago, who uses it now is
// taken to have used it since.
func (m *meter) begin(i state.UsageInterval, s *state.Slice) {
	i.From = exact(s.PendingSince)
	if i.From.IsZero() || i.From.After(m.now) {
		i.From = m.now
	}
	i.From = later(i.From, m.month)
	if m.now.Sub(i.From) > Gap {
		before := i
		before.Estimated = true
		m.end(before, m.now, "")
		i.From = m.now
	} else if j := m.holder(s); i.Use == state.UseRunning && i.From.Before(exact(j.Last().ReadyAt)) {
		starting := i
		starting.Use, i.From = state.UseStarting, earlier(exact(j.Last().ReadyAt), m.now)
		m.end(starting, i.From, "")
	}
	m.goOn(i)
}

// goOn has an interval be open from the last midnight on; what was before is closed.
func (m *meter) goOn(i state.UsageInterval) {
	if i.From.Before(m.midnight) {
		m.end(i, m.midnight, "")
		i.From = m.midnight
	}
	m.next.Open[i.Slice] = &i
}

// end closes an interval, split at each midnight, and where a slice was unseen for some time
// at the moment at which it was there for certain.
func (m *meter) end(i state.UsageInterval, at time.Time, outcome schema.TaskState) {
	known := m.known(&i, at)
	i.UnseenSince = time.Time{}
	for i.From.Before(at) {
		part := i
		part.To = at
		if next := midnightAfter(part.From); next.Before(part.To) {
			part.To = next
		}
		if part.From.Before(known) && known.Before(part.To) {
			part.To = known
		}
		part.Estimated = part.Estimated || !part.From.Before(known)
		if part.To.Equal(at) {
			part.Outcome = outcome
		}
		m.next.Closed = append(m.next.Closed, part)
		i.From = part.To
	}
}

// known is until when a slice was there for certain, of an interval that ends.
func (m *meter) known(i *state.UsageInterval, at time.Time) time.Time {
	if i.UnseenSince.IsZero() || m.now.Sub(i.UnseenSince) <= Gap {
		return at
	}
	known := i.UnseenSince
	if m.LastHeard != nil {
		known = later(known, exact(m.LastHeard(i.Slice)))
	}
	return known
}

// turn is when a slice came to be used otherwise, as far as that is recorded.
func (m *meter) turn(open *state.UsageInterval, s *state.Slice, is *state.UsageInterval) time.Time {
	at := m.now
	j := m.holder(s)
	switch {
	case !s.Terminating.IsZero():
	case is.Use == state.UseIdle:
		at = exact(s.IdleSince)
	case j == nil || j.Last() == nil:
	case is.Use == state.UseRunning && open.Attempt == is.Attempt:
		at = exact(j.Last().ReadyAt)
	case is.Use == state.UseWaiting && j.Last().Number == open.Attempt:
		at = exact(j.Last().EndedAt)
	}
	if at.IsZero() || at.After(m.now) {
		return m.now
	}
	return later(at, open.From)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// outcome is how the attempt of an interval has ended, "" if it goes on or that is not known.
func (m *meter) outcome(open *state.UsageInterval) schema.TaskState {
	j := m.Doc.Jobs[open.Owner]
	if open.Attempt == 0 || j == nil || j.ID != open.JobID {
		return ""
	}
	for i := range j.Attempts {
		if j.Attempts[i].Number == open.Attempt {
			return j.Attempts[i].Outcome
		}
	}
	return ""
}

// conclude sums up what the month has cost by namespace, and notes how budgets stand.
func (m *meter) conclude() {
	spent := map[string]*state.MonthSpend{}
	of := func(i *state.UsageInterval) *state.MonthSpend {
		if spent[i.Namespace] == nil {
			spent[i.Namespace] = &state.MonthSpend{}
		}
		return spent[i.Namespace]
	}
	if m.was.Month == m.next.Month {
		for name, s := range m.was.Spent {
			spent[name] = &state.MonthSpend{Closed: s.Closed, ClosedUnpriced: s.ClosedUnpriced}
		}
	}
	for k := len(m.was.Closed); k < len(m.next.Closed); k++ {
		if i := &m.next.Closed[k]; !i.From.Before(m.month) {
			addCost(&of(i).Closed, &of(i).ClosedUnpriced, i)
		}
	}
	for _, s := range spent {
		s.Used, s.Unpriced = s.Closed, s.ClosedUnpriced
	}
	for namespace := range m.Known.namespaces { // one that spends nothing has a sum, too
		_ = of(&state.UsageInterval{UsageOwner: state.UsageOwner{Namespace: namespace}})
	}
	// The sums are to be the same in whichever order intervals are found.
	for _, name := range slices.Sorted(maps.Keys(m.Known.priced)) {
		i := *m.next.Open[name]
		s := of(&i)
		s.PerHour = s.PerHour.Plus(i.PerHour)
		if !Priced(&i) {
			s.UnpricedSlices++
		}
		i.To = m.now
		addCost(&s.Used, &s.Unpriced, &i)
	}
	if len(spent) > 0 {
		m.next.Spent = make(map[string]state.MonthSpend, len(spent))
	}
	for name, s := range spent {
		m.next.Spent[name] = *s
	}
	for _, b := range Budgets(&m.Doc.Desired, m.next, m.now) {
		if b.Level != state.BudgetWithin {
			if m.next.Levels == nil {
				m.next.Levels = map[string]state.BudgetLevel{}
			}
			m.next.Levels[b.Namespace.Scoped()] = b.Level
		}
	}
}

// addCost adds what an interval that has ended costs, or its hours where it has no price.
func addCost(dollars *state.Dollars, unpriced *float64, i *state.UsageInterval) {
	if !Priced(i) {
		*unpriced += i.Hours()
		return
	}
	*dollars = dollars.Plus(Cost(i))
}

// Cost is what an interval costs. What is estimated costs between nothing and all of it.
func Cost(i *state.UsageInterval) state.Dollars {
	hours := i.Hours()
	cost := state.Dollars{Low: i.PerHour.Low * hours, High: i.PerHour.High * hours}
	if i.Estimated {
		cost.Low = 0
	}
	return cost
}

// Priced reports whether the price of an interval is known: of a cloud's slice that there is
// one, and of others that there is nothing to pay.
func Priced(i *state.UsageInterval) bool {
	return i.PerHour != (state.Dollars{}) || !isPriced(i.Provider)
}

// IsDue reports whether the metering of a document is to be brought up to date although
// nothing else is written: slices are there, and it was not for a while or a budget stands
// otherwise.
func IsDue(doc *state.Document, now time.Time) bool {
	m := doc.Metering
	if m == nil {
		return false // the next document that is written has one
	}
	if len(m.Open) > 0 && (now.Sub(m.At) >= Heartbeat || !midnightAfter(m.At).After(now)) {
		return true
	}
	for _, b := range Budgets(&doc.Desired, m, now) {
		if m.Levels[b.Namespace.Scoped()] != b.Level {
			return true
		}
	}
	return false
}

// DueAt is when IsDue will be true by time alone, zero if that cannot be foreseen.
func DueAt(doc *state.Document, now time.Time) time.Time {
	m := doc.Metering
	if m == nil {
		return time.Time{}
	}
	var due time.Time
	sooner := func(at time.Time) {
		if !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	if len(m.Open) > 0 {
		sooner(m.At.Add(Heartbeat))
		sooner(midnightAfter(m.At))
	}
	for _, b := range Budgets(&doc.Desired, m, now) {
		sooner(b.ChangesAt)
	}
	return due
}

func midnightAfter(at time.Time) time.Time {
	y, m, d := at.Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
}

// continues reports whether an open interval is what a slice is used for still, at the same
// price.
func continues(open, is *state.UsageInterval) bool {
	return open.Use == is.Use && open.UsageOwner == is.UsageOwner && open.UsageShape == is.UsageShape && open.PerHour == is.PerHour
}
