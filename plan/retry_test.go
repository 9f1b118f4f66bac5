package plan

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Missing software, and an end that is stated to be final, use one attempt, whatever budget is left; other failures use it.
func TestNoRetryAfterAFinalEnd(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		cause   schema.TerminationCause // "": none is recorded
		retries bool
	}{
		{"", true},
		{schema.TerminationActorUnmade, true},
		{schema.TerminationActorInvalid, false},
		{schema.TerminationCallableRefused, true},
		{schema.TerminationCallableInvalid, false},
		{schema.TerminationProgramMissing, false},
		{schema.TerminationPackageMissing, false},
		{schema.TerminationFinal, false},
	} {
		failed := state.Task{State: schema.TaskFailed}
		if test.cause != "" {
			failed.Termination = &schema.Termination{Cause: test.cause}
		}
		a := state.Attempt{Outcome: schema.TaskFailed, EndedAt: now, Reason: "why", Tasks: []state.Task{{State: schema.TaskKilled}, failed}}
		j := &state.Job{Status: schema.JobRunning, Attempts: []state.Attempt{a}, Spec: &schema.Job{Retries: schema.Retries{Failure: schema.Unlimited}}}
		after := Afterwards(j, schema.TaskFailed)
		Settle(j, now)
		if over := j.Status == schema.JobFailed; over == test.retries || over && j.Reason != "why" {
			t.Errorf("%q: the job is %s, %q; want a retry: %v", test.cause, j.Status, j.Reason, test.retries)
		}
		if (after == "it will be tried again") != test.retries {
			t.Errorf("%q: %s; want a retry: %v", test.cause, after, test.retries)
		}
	}
}
