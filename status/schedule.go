package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// scheduleJSON is where a job with a schedule stands.
type scheduleJSON struct {
	Cron     string    `json:"cron"`
	Timezone string    `json:"timezone"`
	Suspend  bool      `json:"suspend,omitempty"`
	Next     time.Time `json:"next,omitzero"` // when the next run is due
	// Served says that a controller serves, which is to begin it.
	Served bool `json:"served"`
	// Run is the number of the last run that began, RunDueAt when it was due.
	Run      int         `json:"run"`
	RunDueAt time.Time   `json:"run_due_at,omitzero"`
	Queued   []time.Time `json:"queued,omitempty"`
	// Outcome, Reason and EndedAt are of the last run that has ended.
	Outcome schema.JobStatus   `json:"outcome,omitempty"`
	Reason  string             `json:"reason,omitempty"`
	EndedAt time.Time          `json:"ended_at,omitzero"`
	Skipped *state.SkippedRuns `json:"skipped,omitempty"`
}

func (v *View) scheduleOf(j *state.Job) *scheduleJSON {
	s, runs := j.Spec.Schedule, j.Scheduled
	if s == nil {
		return nil
	}
	out := &scheduleJSON{Cron: s.Cron, Timezone: cmp.Or(s.Timezone, "UTC"), Suspend: s.Suspend, Served: v.acts()}
	if runs != nil {
		out.Next, out.Run, out.RunDueAt, out.Queued = runs.Due, runs.Run, runs.DueAt, runs.Queued
		out.Outcome, out.Reason, out.EndedAt, out.Skipped = runs.Outcome, runs.Reason, runs.EndedAt, runs.Skipped
	}
	return out
}

// scheduleNote is the note of a job; of one with a schedule, with its next run.
func (v *View) scheduleNote(j *state.Job) string {
	if j.Spec.Schedule == nil || j.Scheduled == nil || j.Status == schema.JobStopped {
		return j.Reason
	}
	runs := j.Scheduled
	var parts []string
	switch {
	case j.Spec.Schedule.Suspend:
		parts = append(parts, "suspended")
	case runs.Due.IsZero():
	case !v.acts():
		parts = append(parts, "next run at "+clock(runs.Due)+", once a controller serves: fray watch")
	case runs.Due.After(v.now):
		parts = append(parts, "next run in "+coarseAge(runs.Due.Sub(v.now))+", at "+clock(runs.Due))
	default:
		parts = append(parts, "a run is due since "+clock(runs.Due))
	}
	if n := len(runs.Queued); n > 0 {
		parts = append(parts, fmt.Sprintf("%d more queued", n))
	}
	switch {
	case j.Reason != "":
		parts = append(parts, j.Reason)
	case runs.Ended > 0 && j.Status == schema.JobScheduled:
		parts = append(parts, fmt.Sprintf("run %d %s", runs.Ended, runs.Outcome))
	}
	if s := runs.Skipped; s != nil && (runs.Run == 0 || s.Last.After(runs.DueAt)) {
		parts = append(parts, change.SkippedRunsText(s))
	}
	return strings.Join(parts, "; ")
}

// clock is a time to a minute, in the zone of who reads it.
func clock(at time.Time) string { return at.Local().Format("2006-01-02 15:04") }
