package cron

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
)

const (
	// Punctual is how late a run may begin without being a missed one.
	Punctual = time.Minute
	// MaxMissed is how many missed runs begin at most after one downtime.
	MaxMissed = 100
)

// Moment is what is decided on.
type Moment struct {
	Now    time.Time
	Due    time.Time   // the first time that has not been decided about
	Busy   bool        // a run is going on, or is about to begin
	Queued []time.Time // runs that begin after that one
}

// Decision is what becomes of the runs that are due.
type Decision struct {
	// Queued are the runs that begin, one after another. The first one begins now unless
	// another goes on.
	Queued []time.Time
	// Replace says that the run which goes on is stopped for the first one.
	Replace bool
	Skipped []Skip
	Due     time.Time // the first time that is left to be decided about, zero: none
}

// Skip is runs that do not begin.
type Skip struct {
	First, Last time.Time // when the first and the last of them were due
	Runs        int       // how many; 0: very many
	Why         schema.RunSkip
}

// Decide decides about the runs that are due: each is decided about once.
func Decide(s *schema.Schedule, t Times, m Moment) Decision {
	d := Decision{Queued: slices.Clone(m.Queued), Due: m.Due}
	if m.Due.IsZero() || m.Now.Before(m.Due) {
		return d
	}
	due, more := t.Latest(m.Due, m.Now, MaxMissed+2)
	d.Due = t.Next(m.Now)
	if more {
		d.Skipped = append(d.Skipped, Skip{First: m.Due, Last: due[0], Why: schema.SkippedMissed})
	}
	punctual := slices.IndexFunc(due, func(at time.Time) bool { return m.Now.Sub(at) <= Punctual })
	if punctual < 0 {
		punctual = len(due)
	}
	missed, onTime := due[:punctual], due[punctual:]
	late, kept := afterDeadline(s, missed, m.Now)
	d.skip(late, schema.SkippedDeadline)
	switch s.Missed {
	case schema.MissedSkip:
		d.skip(kept, schema.SkippedMissed)
	case schema.MissedAll:
		first := max(0, len(kept)-MaxMissed)
		d.skip(kept[:first], schema.SkippedMissed)
		d.Queued = append(d.Queued, kept[first:]...)
	case schema.MissedOnce:
		last := len(kept)
		if len(onTime) == 0 {
			last = max(0, len(kept)-1)
		}
		d.skip(kept[:last], schema.SkippedMissed)
		onTime = slices.Concat(kept[last:], onTime)
	}
	for _, at := range onTime {
		d.take(s.Overlap, m.Busy, at)
	}
	return d
}

// take decides about a run that is due now.
func (d *Decision) take(overlap schema.Overlap, busy bool, at time.Time) {
	if !busy && len(d.Queued) == 0 {
		d.Queued = append(d.Queued, at)
		return
	}
	switch overlap {
	case schema.OverlapSkip:
		d.skip([]time.Time{at}, schema.SkippedOverlap)
	case schema.OverlapWait:
		if waits := len(d.Queued) > 0 && busy || len(d.Queued) > 1; waits {
			d.skip([]time.Time{at}, schema.SkippedWaiting)
			return
		}
		d.Queued = append(d.Queued, at)
	case schema.OverlapReplace:
		d.skip(d.Queued, schema.SkippedOverlap)
		d.Queued, d.Replace = []time.Time{at}, busy
	}
}

func (d *Decision) skip(runs []time.Time, why schema.RunSkip) {
	if len(runs) > 0 {
		d.Skipped = append(d.Skipped, Skip{First: runs[0], Last: runs[len(runs)-1], Runs: len(runs), Why: why})
	}
}

// afterDeadline parts runs into those that would begin too late and the others.
func afterDeadline(s *schema.Schedule, runs []time.Time, now time.Time) (late, kept []time.Time) {
	first := 0
	for first < len(runs) && IsTooLate(s, runs[first], now) {
		first++
	}
	return runs[:first], runs[first:]
}

// IsTooLate reports whether a run that was due at a time must not begin any more.
func IsTooLate(s *schema.Schedule, due, now time.Time) bool {
	return s.StartingDeadline > 0 && now.Sub(due) > time.Duration(s.StartingDeadline)
}
