package state

import (
	"time"

	"github.com/fray-ml/fray/schema"
)

// ScheduledRuns is where a job with a schedule stands. It is replaced as a whole, never
// changed in place.
type ScheduledRuns struct {
	// Rule is the [schema.Schedule.Rule] that Due follows from.
	Rule string `json:"rule,omitempty"`
	// Due is the first time that has not been decided about, zero while there is none.
	Due time.Time `json:"due,omitzero"`
	// Queued are the runs that begin as soon as none goes on, in this order.
	Queued []time.Time `json:"queued,omitempty"`
	// Replace says that the run which goes on is being stopped for the first of these.
	Replace bool `json:"replace,omitempty"`
	ScheduledRun
	// Outcome, Reason and EndedAt are how the last run ended that has ended, and Ended its number.
	Outcome schema.JobStatus `json:"outcome,omitempty"`
	Reason  string           `json:"reason,omitempty"`
	Ended   int              `json:"ended,omitempty"`
	EndedAt time.Time        `json:"ended_at,omitzero"`
	// Skipped are the last runs that did not begin, nil if all have.
	Skipped *SkippedRuns `json:"skipped,omitempty"`
}

// ScheduledRun is one run of a job with a schedule.
type ScheduledRun struct {
	Run   int       `json:"run,omitempty"`       // its number, from 1; 0: none has begun
	DueAt time.Time `json:"run_due_at,omitzero"` // FRAY_SCHEDULED_TIME
}

// SkippedRuns are runs that were due and did not begin.
type SkippedRuns struct {
	First time.Time      `json:"first"`
	Last  time.Time      `json:"last"`
	Runs  int            `json:"runs,omitempty"` // 0: very many
	Why   schema.RunSkip `json:"why"`
}

// RunGoesOn reports whether a run has begun that has not ended.
func (s *ScheduledRuns) RunGoesOn() bool { return s != nil && s.Run > s.Ended }
