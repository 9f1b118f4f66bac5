package accounting

import (
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/state"
)

// List prices of Cloud Storage for 10,000 operations on objects of class Standard, in dollars
// (https://cloud.google.com/storage/pricing#process-pricing): of class A in a region, and in a
// dual-region or multi-region; of class B in each of them. Deletions are free.
const (
	regionClassA = 0.05
	multiClassA  = 0.10
	classB       = 0.004
	pricedBy     = 10_000
)

// RequestDays is how many days of requests are kept, so that a month can be compared with that of
// a year ago.
const RequestDays = 400

// RequestCost is what requests cost at list prices: between that in a region and in several.
func RequestCost(r state.StoreRequests) state.Dollars {
	b := float64(r.Reads) * classB
	return state.Dollars{
		Low:  (float64(r.Writes+r.Lists)*regionClassA + b) / pricedBy,
		High: (float64(r.Writes+r.Lists)*multiClassA + b) / pricedBy,
	}
}

// RequestCounts are the counts of all processes at one time.
type RequestCounts struct {
	Leader state.CountedRequests
	Hosts  map[string]state.CountedRequests // those that report
	// Known reports whether a host is one of the stack's: it may be silent for a while.
	Known func(host string) bool
}

// Counted returns a log with what was asked since it was written, on the day of now. Counts that
// the log has already add nothing. The first log of a stack begins with the hosts as they are.
func Counted(log *state.StoreRequestLog, counts *RequestCounts, now time.Time) *state.StoreRequestLog {
	next := &state.StoreRequestLog{Leader: counts.Leader, Hosts: make(map[string]state.CountedRequests, len(counts.Hosts))}
	var asked state.StoreRequestDay
	if log == nil {
		asked.Leader = counts.Leader.StoreRequests
	} else {
		next.Days = slices.Clone(log.Days)
		asked.Leader = counts.Leader.After(log.Leader)
		for name, before := range log.Hosts {
			if counts.Known(name) {
				next.Hosts[name] = before
			}
		}
	}
	for name, is := range counts.Hosts {
		if log != nil {
			asked.Hosts = asked.Hosts.Plus(is.After(log.Hosts[name]))
		}
		next.Hosts[name] = is
	}
	asked.Day = now.UTC().Format(time.DateOnly)
	next.Days = withDay(next.Days, &asked)
	return next
}

// withDay adds to the day of a list, which is the last one or a new one unless clocks differ.
func withDay(days []state.StoreRequestDay, asked *state.StoreRequestDay) []state.StoreRequestDay {
	at, found := slices.BinarySearchFunc(days, asked.Day, func(d state.StoreRequestDay, day string) int { return strings.Compare(d.Day, day) })
	if !found {
		days = slices.Insert(days, at, state.StoreRequestDay{Day: asked.Day})
	}
	days[at].Leader, days[at].Hosts = days[at].Leader.Plus(asked.Leader), days[at].Hosts.Plus(asked.Hosts)
	return days[max(0, len(days)-RequestDays):]
}

// RequestsOf are the days of a log of which a part is in a time.
func RequestsOf(log *state.StoreRequestLog, since, until time.Time) []state.StoreRequestDay {
	if log == nil {
		return nil
	}
	first, last := since.UTC().Format(time.DateOnly), until.UTC().Add(-1).Format(time.DateOnly)
	return slices.DeleteFunc(slices.Clone(log.Days), func(d state.StoreRequestDay) bool { return d.Day < first || d.Day > last })
}
