package plan

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// AttemptOutcome sums up an attempt's tasks: running (all ready), pending (not yet),
// or how it ends, and by which task. What the infrastructure did outweighs what the
// program did, because programs fail when their peers are taken away; of those that
// ended alike it is the first that did.
func AttemptOutcome(a *state.Attempt) (outcome schema.TaskState, by int) {
	worst, rank, running, succeeded := 0, 0, 0, 0
	for i := range a.Tasks {
		switch r := Severity(a.Tasks[i].State); {
		case r > rank, r == rank && r > 0 && endedFirst(&a.Tasks[i], &a.Tasks[worst]):
			worst, rank = i, r
		case a.Tasks[i].State == schema.TaskRunning:
			running++
		case a.Tasks[i].State == schema.TaskSucceeded:
			succeeded++
		}
	}
	switch n := len(a.Tasks); {
	case rank > 0:
		return a.Tasks[worst].State, worst
	case succeeded == n:
		return schema.TaskSucceeded, 0
	case running+succeeded == n:
		return schema.TaskRunning, 0
	}
	return schema.TaskPending, 0
}

// endedFirst reports whether a task ended before another one, as far as their hosts
// report when.
func endedFirst(a, b *state.Task) bool {
	return !a.EndedAt.IsZero() && !b.EndedAt.IsZero() && a.EndedAt.Before(b.EndedAt)
}

// Severity ranks the states that end an attempt, 0 for those that do not.
func Severity(s schema.TaskState) int {
	switch s {
	case schema.TaskPreempted:
		return 6
	case schema.TaskWorkerFailed:
		return 5
	case schema.TaskExitUnknown:
		return 4
	case schema.TaskUnschedulable:
		return 3
	case schema.TaskFailed:
		return 2
	case schema.TaskKilled:
		return 1
	case schema.TaskPending, schema.TaskAssigned, schema.TaskBuilding, schema.TaskRunning, schema.TaskSucceeded:
	}
	return 0
}

// TaskReason returns why a task ended, as its attempt records it.
func TaskReason(a *state.Attempt, task int) string {
	t := &a.Tasks[task]
	why := cmp.Or(t.Reason, OutcomeWords(t.State))
	if len(a.Tasks) == 1 {
		return why
	}
	return fmt.Sprintf("task %d of %d: %s", task, len(a.Tasks), why)
}

// TaskOutcome is preempted, worker_failed or exit_unknown if any task of the
// attempt ended that way, in this order, however the first bad report read.
func TaskOutcome(a *state.Attempt) schema.TaskState {
	found := schema.TaskState("")
	for i := range a.Tasks {
		switch s := a.Tasks[i].State; s {
		case schema.TaskPreempted:
			return s
		case schema.TaskWorkerFailed:
			found = s
		case schema.TaskExitUnknown:
			found = cmp.Or(found, s)
		case schema.TaskPending, schema.TaskAssigned, schema.TaskBuilding, schema.TaskRunning,
			schema.TaskSucceeded, schema.TaskFailed, schema.TaskKilled, schema.TaskUnschedulable:
		}
	}
	return found
}

// OutcomeWords returns an outcome as people read it.
func OutcomeWords(s schema.TaskState) string { return strings.ReplaceAll(string(s), "_", " ") }

// Afterwards says what follows for a job whose attempt ends with an outcome,
// unless hosts turn out to be lost.
func Afterwards(j *state.Job, outcome schema.TaskState) string {
	retries := j.Spec.Retries
	switch outcome {
	case schema.TaskFailed:
		if isFinal(j.Last()) {
			return "a retry would end alike"
		}
		if !Within(j.Failures+1, retries.Failure) {
			return spentText("failure", retries.Failure)
		}
	case schema.TaskPreempted, schema.TaskWorkerFailed:
		if !Within(j.Preemptions+1, retries.Preemption) {
			return spentText("preemption", retries.Preemption)
		}
	case schema.TaskExitUnknown:
		if !Within(j.UnknownEnds+1, retries.Preemption) {
			return spentText("preemption", retries.Preemption)
		}
	case schema.TaskPending, schema.TaskAssigned, schema.TaskBuilding, schema.TaskRunning,
		schema.TaskSucceeded, schema.TaskKilled, schema.TaskUnschedulable:
	}
	return "it will be tried again"
}

// spentText says that a budget is spent, and which attribute sets it.
func spentText(attribute string, budget int) string {
	return fmt.Sprintf("no retry is left: retries.%s is %d, and a higher one would allow more", attribute, budget)
}
