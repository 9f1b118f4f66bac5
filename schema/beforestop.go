package schema

import (
	"slices"
	"time"
)

// BeforeStop is a command that runs beside a task before fray ends it.
type BeforeStop struct {
	Command []string `json:"command"`
	Timeout Duration `json:"timeout"`
	// On are the stops before which it runs, sorted; nil: all.
	On    []StopReason `json:"on,omitempty"`
	Tasks HookTasks    `json:"tasks"`
}

// RunsOn reports whether it runs before a stop of a task; a nil one runs before none.
func (b *BeforeStop) RunsOn(why StopReason, task int) bool {
	return b != nil && why != "" && (len(b.On) == 0 || slices.Contains(b.On, why)) && (b.Tasks == HookOnAll || task == 0)
}

// StopReason is a closed set of why fray ends a task that could go on.
type StopReason string

// Why a task is ended.
const (
	StopPreemption StopReason = "preemption" // its host is being taken away, or that of a peer was
	StopRequest    StopReason = "stop"       // it was asked to stop, or makes room for others
	StopRestart    StopReason = "restart"    // it begins again, for a changed spec
	StopDestroy    StopReason = "destroy"    // its job is removed, or its slices are replaced
)

// StopReasons are all of them.
func StopReasons() []StopReason {
	return []StopReason{StopPreemption, StopRequest, StopRestart, StopDestroy}
}

// HookTasks is a closed set of the tasks beside which a hook runs.
type HookTasks string

// The tasks.
const (
	HookOnAll   HookTasks = "all"
	HookOnFirst HookTasks = "first" // of the attempt: task 0
)

// HookOutcome is a closed set of how a hook ended.
type HookOutcome string

// How hooks end.
const (
	HookSucceeded  HookOutcome = "succeeded"
	HookFailed     HookOutcome = "failed"
	HookTimedOut   HookOutcome = "timed_out"
	HookNotStarted HookOutcome = "not_started" // its program was not found, or no time was left
	HookUnknown    HookOutcome = "unknown"     // its end was not seen
)

func equalBeforeStop(a, b *BeforeStop) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Timeout == b.Timeout && a.Tasks == b.Tasks && slices.Equal(a.Command, b.Command) && slices.Equal(a.On, b.On)
}

// HookResult is how a hook went that ran before a task was ended.
type HookResult struct {
	Stop      StopReason  `json:"stop"`    // before which stop it ran
	Outcome   HookOutcome `json:"outcome"` // HookUnknown until it has ended
	Reason    string      `json:"reason,omitempty"`
	StartedAt time.Time   `json:"started_at"`
	EndedAt   time.Time   `json:"ended_at,omitzero"`
}

// Variables of a hook's environment.
const (
	StopReasonVariable    = "FRAY_STOP_REASON"
	StopDeadlineVariable  = "FRAY_STOP_DEADLINE"  // Unix seconds, at which it is ended
	StopRemainingVariable = "FRAY_STOP_REMAINING" // seconds until then, when it starts
)
