// Package cron has the times at which the runs of a job are due ([Times]), and decides
// which of them begin ([Decide]). It is pure.
//
// It leaves out what a run is and how it begins. Expressions are parsed by
// github.com/netresearch/go-cron.
package cron

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // hosts may have no time zones

	library "github.com/netresearch/go-cron"

	"github.com/fray-ml/fray/schema"
)

// Times are the times of a cron expression in a time zone, to a minute.
//
// Where a zone's clocks go forward, times that they pass over do not occur that day.
// Where they go back, times that occur twice have a run each time. Kubernetes' CronJob
// does the same.
type Times struct {
	fields *library.SpecSchedule
	zone   *time.Location
}

// Zone is the time zone of a name; "" is UTC.
func Zone(name string) (*time.Location, error) {
	if strings.EqualFold(name, "local") {
		return nil, errors.New("the time zone must not depend on the host: want a name such as \"Europe/Zurich\"")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %q: want an IANA name, such as \"UTC\" or \"Europe/Zurich\"", name)
	}
	return zone, nil
}

// Parse reads a cron expression: five fields, or @hourly, @daily, @weekly, @monthly or @yearly.
func Parse(expression string, zone *time.Location) (Times, error) {
	if strings.Contains(expression, "=") {
		return Times{}, errors.New("want five fields without a time zone, which is an attribute of its own")
	}
	const options = library.Minute | library.Hour | library.Dom | library.Month | library.Dow | library.Descriptor | library.DowOrDom
	parser, err := library.TryNewParser(options)
	if err != nil {
		return Times{}, fmt.Errorf("make a parser: %w", err)
	}
	parsed, err := parser.Parse(expression)
	if err != nil {
		return Times{}, err
	}
	fields, ok := parsed.(*library.SpecSchedule)
	if !ok {
		return Times{}, errors.New("want times of the clock: a pause such as @every has none")
	}
	of := *fields
	of.Location = zone
	return Times{fields: &of, zone: zone}, nil
}

// Next is the first time after another, zero if there is none within five years. Zero Times have none.
func (t Times) Next(after time.Time) time.Time {
	if t.fields == nil {
		return time.Time{}
	}
	for at := after.In(t.zone); ; {
		at = t.fields.Next(at)
		if at.IsZero() || t.occurs(at) {
			return at.UTC()
		}
	}
}

// occurs reports whether the clocks of the zone show a time of the expression: the library
// returns a time after those that clocks pass over.
func (t Times) occurs(at time.Time) bool {
	return t.fields.Hour&(1<<uint(at.Hour())) != 0 && t.fields.Minute&(1<<uint(at.Minute())) != 0
}

// Following are the next times after another, n at most.
func (t Times) Following(after time.Time, n int) []time.Time {
	var found []time.Time
	for range n {
		after = t.Next(after)
		if after.IsZero() {
			break
		}
		found = append(found, after)
	}
	return found
}

// Latest are the last times from one to another, both included, n at most; more says that
// there are others before them.
func (t Times) Latest(from, to time.Time, n int) (found []time.Time, more bool) {
	const day = 24 * time.Hour
	for _, window := range []time.Duration{time.Hour, day, 31 * day, 366 * day, 9 * 366 * day} {
		begin := from
		if whole := to.Add(-window); whole.After(from) {
			begin = whole
		}
		found = t.between(begin, to)
		if begin.Equal(from) || len(found) > n {
			break
		}
	}
	if len(found) > n {
		return slices.Clone(found[len(found)-n:]), true
	}
	return found, false
}

func (t Times) between(from, to time.Time) []time.Time {
	var found []time.Time
	for at := t.Next(from.Add(-time.Nanosecond)); !at.IsZero() && !at.After(to); at = t.Next(at) {
		found = append(found, at)
	}
	return found
}

// Of are the times of a schedule.
func Of(s *schema.Schedule) (Times, error) {
	zone, err := Zone(s.Timezone)
	if err != nil {
		return Times{}, err
	}
	return Parse(s.Cron, zone)
}
