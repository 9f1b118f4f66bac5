package accounting

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Dimension is a closed set of what use is summed up by.
type Dimension string

// The dimensions.
const (
	ByNamespace Dimension = "namespace"
	ByUser      Dimension = "user"
	ByJob       Dimension = "job"
	ByDay       Dimension = "day"
	ByProvider  Dimension = "provider"
	ByType      Dimension = "type"
	ByZone      Dimension = "zone"
)

// Dimensions are all of them.
func Dimensions() []Dimension {
	return []Dimension{ByNamespace, ByUser, ByJob, ByDay, ByProvider, ByType, ByZone}
}

// of is the value of an interval, "" for none.
func (d Dimension) of(i *state.UsageInterval) string {
	switch d {
	case ByNamespace:
		return i.Namespace
	case ByUser:
		return i.User
	case ByJob:
		return i.Owner.String()
	case ByDay:
		return Day(i)
	case ByProvider:
		return string(i.Provider)
	case ByType:
		return i.Type
	case ByZone:
		return i.Zone
	}
	return ""
}

// Query is which intervals are summed up, and by what.
type Query struct {
	Since, Until time.Time // parts of intervals count
	Namespace    *string   // nil: all; "": those without one
	By           []Dimension
}

// Row is the sum of intervals that have the same values.
type Row struct {
	Values []string // of Query.By
	Sum    Sum
}

// Sum is what intervals come to, in hours and dollars.
type Sum struct {
	Slices float64 // hours of slices
	Hosts  float64 // of their hosts
	Chips  float64 // of TPU chips
	GPUs   float64
	Cores  float64 // of slices without TPUs
	Cost   state.Dollars
	// Unpriced are the hours of slices whose price is not known; they are not in Cost. Free are
	// those of slices that have none: of this machine, and of a cluster that is there already.
	Unpriced, Free float64
	// Estimated are the hours of slices in which no controller saw whether they were there.
	Estimated float64
	// Uses are the hours of hosts by what they were used for.
	Uses map[state.SliceUse]float64
	// Lost are those hours of UseRunning whose attempt ended by a failure or a loss.
	Lost float64
}

// Useful is which part of the paid time attempts were ready in, between its ends: without
// the attempts that ended by a failure or a loss, and with them. It is false where there was none.
func (s *Sum) Useful() (low, high float64, known bool) {
	if s.Hosts <= 0 {
		return 0, 0, false
	}
	running := s.Uses[state.UseRunning]
	return max(0, running-s.Lost) / s.Hosts, running / s.Hosts, true
}

// attempt names one try of a job.
type attempt struct {
	job    string
	number int
}

// Summarize sums up merged intervals, in the order of their values, and all of them together.
// Outcomes of attempts are those of all intervals that it is given, also of such that do not count.
func Summarize(intervals []state.UsageInterval, q *Query) ([]Row, Sum) {
	outcomes := map[attempt]schema.TaskState{}
	for k := range intervals {
		if i := &intervals[k]; i.Outcome != "" {
			outcomes[attempt{i.JobID, i.Attempt}] = i.Outcome
		}
	}
	total := Sum{Uses: map[state.SliceUse]float64{}}
	rows := map[string]*Row{}
	for k := range intervals {
		i, counts := q.part(&intervals[k])
		if !counts {
			continue
		}
		values := make([]string, len(q.By))
		for n, d := range q.By {
			values[n] = d.of(&i)
		}
		key := strings.Join(values, "\x00")
		row := rows[key]
		if row == nil {
			row = &Row{Values: values, Sum: Sum{Uses: map[state.SliceUse]float64{}}}
			rows[key] = row
		}
		lost := isLost(outcomes[attempt{i.JobID, i.Attempt}])
		row.Sum.add(&i, lost)
		total.add(&i, lost)
	}
	sorted := make([]Row, 0, len(rows))
	for _, row := range rows {
		sorted = append(sorted, *row)
	}
	slices.SortFunc(sorted, func(a, b Row) int { return slices.Compare(a.Values, b.Values) })
	return sorted, total
}

// part is the part of an interval that counts.
func (q *Query) part(of *state.UsageInterval) (state.UsageInterval, bool) {
	i := *of
	if q.Namespace != nil && i.Namespace != *q.Namespace {
		return i, false
	}
	i.From = later(i.From, q.Since)
	if i.To.After(q.Until) {
		i.To = q.Until
	}
	return i, i.To.After(i.From)
}

func (s *Sum) add(i *state.UsageInterval, lost bool) {
	hours := i.Hours()
	hosts := hours * float64(max(1, i.Hosts))
	s.Slices += hours
	s.Hosts += hosts
	s.Chips += hours * float64(i.Chips)
	s.GPUs += hours * float64(i.GPUs)
	s.Cores += hours * i.Cores
	s.Uses[i.Use] += hosts
	if i.Estimated {
		s.Estimated += hours
	}
	if i.Use == state.UseRunning && lost {
		s.Lost += hosts
	}
	switch {
	case !isPriced(i.Provider):
		s.Free += hours
	case !Priced(i):
		s.Unpriced += hours
	default:
		s.Cost = s.Cost.Plus(Cost(i))
	}
}

// isLost reports whether what an attempt did since its last checkpoint is lost by how it ended.
func isLost(outcome schema.TaskState) bool {
	switch outcome {
	case schema.TaskFailed, schema.TaskWorkerFailed, schema.TaskPreempted, schema.TaskUnschedulable, schema.TaskExitUnknown:
		return true
	case "", schema.TaskPending, schema.TaskAssigned, schema.TaskBuilding, schema.TaskRunning, schema.TaskSucceeded, schema.TaskKilled:
	}
	return false
}

// ParseDimensions reads names of dimensions, each once.
func ParseDimensions(names []string) ([]Dimension, error) {
	var by []Dimension
	for _, name := range names {
		d := Dimension(strings.TrimSpace(name))
		switch {
		case !slices.Contains(Dimensions(), d):
			return nil, fmt.Errorf("%q is nothing to group by: want some of %s", name, joined(Dimensions()))
		case !slices.Contains(by, d):
			by = append(by, d)
		}
	}
	return by, nil
}

func joined(dimensions []Dimension) string {
	names := make([]string, len(dimensions))
	for i, d := range dimensions {
		names[i] = string(d)
	}
	return strings.Join(names, ", ")
}
