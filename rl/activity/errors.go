package activity

import (
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/rl"
)

// Error is one that a module has reported.
type Error struct {
	ID        string         `json:"error_id"`
	Time      time.Time      `json:"-"`
	Timestamp float64        `json:"timestamp"` // Time in seconds since 1970
	Module    string         `json:"module_name"`
	Work      string         `json:"work_context"`
	Severity  rl.Severity    `json:"severity"`
	Message   string         `json:"message"`
	Details   map[string]any `json:"details,omitempty"`
	Type      string         `json:"exception_type,omitempty"`
	Traceback string         `json:"exception_traceback,omitempty"` // as it was where it was raised
	Critical  bool           `json:"critical,omitempty"`            // the run cannot go on
}

// Recent is how long an error counts for the health of a run.
const Recent = 5 * time.Minute

// Errors are the last that were reported, the oldest first.
type Errors struct {
	instance string
	max      int
	next     int64
	kept     []Error
}

// NewErrors keeps at most so many; 0: 1000. Their IDs begin with the instance.
func NewErrors(instance string, most int) *Errors {
	if most <= 0 {
		most = 1000
	}
	return &Errors{instance: instance, max: most}
}

// Report keeps an error, and returns its ID. The severity "" is SeverityError. Of more than are kept the oldest goes.
func (e *Errors) Report(now time.Time, err Error) string {
	e.next++
	err.ID, err.Time = fmt.Sprintf("error-%s-%d", e.instance, e.next), now
	err.Timestamp = float64(now.UnixMicro()) / 1e6
	if err.Severity == "" {
		err.Severity = rl.SeverityError
	}
	if len(e.kept) == e.max {
		copy(e.kept, e.kept[1:])
		e.kept = e.kept[:e.max-1]
	}
	e.kept = append(e.kept, err)
	return err.ID
}

// All are those that are kept, the oldest first. They are not to be changed.
func (e *Errors) All() []Error { return slices.Clip(e.kept) }

// HealthStatus is what the errors of the last five minutes amount to.
type HealthStatus struct {
	Status   rl.Health `json:"status"`
	Message  string    `json:"message"`
	Recent   int       `json:"recent_error_count"` // of all severities
	Errors   int       `json:"error_level_count"`
	Warnings int       `json:"warning_level_count"`
	Critical int       `json:"critical_count"` // errors after which the run cannot go on
}

// Health weighs the errors of the last five minutes: one of severity error is HealthError, one warning HealthWarning.
func (e *Errors) Health(now time.Time) HealthStatus {
	s := HealthStatus{Status: rl.Healthy}
	var last Error
	for _, err := range e.kept {
		if now.Sub(err.Time) > Recent {
			continue
		}
		s.Recent++
		if err.Critical {
			s.Critical++
		}
		switch err.Severity {
		case rl.SeverityError:
			s.Errors, last = s.Errors+1, err
		case rl.SeverityWarning:
			s.Warnings++
			if s.Errors == 0 {
				last = err
			}
		case rl.SeverityInfo:
		}
	}
	switch {
	case s.Errors > 0:
		s.Status, s.Message = rl.HealthError, fmt.Sprintf("%s in the last %s, the last of %s during %s: %s", counted(s.Errors, "error"), Recent, last.Module, last.Work, last.Message)
	case s.Warnings > 0:
		s.Status, s.Message = rl.HealthWarning, fmt.Sprintf("%s in the last %s, the last of %s during %s: %s", counted(s.Warnings, "warning"), Recent, last.Module, last.Work, last.Message)
	default:
		s.Message = fmt.Sprintf("no errors in the last %s", Recent)
	}
	return s
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
