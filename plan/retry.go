package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Times of the retry and liveness policies.
const (
	firstBackoff = time.Second
	MaxBackoff   = 5 * time.Minute
	// SteadyAfter is how long an attempt must have been ready for the
	// backoff to start over.
	SteadyAfter = 10 * time.Minute
	// BootTimeout is how long a slice's hosts may take to report in for the
	// first time before the slice is given up; larger slices get more.
	BootTimeout = time.Hour
	// localBoot is that of slices whose hosts are processes of this machine.
	localBoot = 5 * time.Minute
	// reservedQueue is how long a reservation with the cloud may take to give
	// what was reserved.
	reservedQueue = 4 * time.Hour
	// reservedBoot is how long the hosts of such a slice may take after that.
	reservedBoot = 2 * time.Hour
)

// Backoff is the delay after the n-th attempt in a row that ended too soon:
// 1 s, 2 s, 4 s … 5 min; none for n = 0.
func Backoff(n int) time.Duration {
	if n <= 0 {
		return 0
	}
	if n > 20 {
		return MaxBackoff
	}
	return min(firstBackoff<<(n-1), MaxBackoff)
}

// BootBudget doubles from 64 hosts and triples from 256, as practice has it.
func BootBudget(spec *schema.SliceSpec) time.Duration {
	switch {
	case spec.Provider == schema.ProviderLocal:
		return localBoot
	case spec.Hosts >= 256:
		return 3 * BootTimeout
	case spec.Hosts >= 64:
		return 2 * BootTimeout
	case spec.Cloud.Provisioning == schema.ProvisioningReserved:
		return reservedBoot
	}
	return BootTimeout
}

// QueueBudget is how long a slice may wait in the cloud's queue; 0: as long as it
// is valid there, since that is what it was asked for.
func QueueBudget(spec *schema.SliceSpec) time.Duration {
	if spec.Provider == schema.ProviderRay {
		return 0 // a cluster has no more than it has: others have to end first
	}
	switch spec.Cloud.Provisioning {
	case schema.ProvisioningQueued, schema.ProvisioningFlexStart:
		return 0
	case schema.ProvisioningReserved:
		return reservedQueue
	}
	return BootBudget(spec)
}

// Within reports whether n uses keep a budget.
func Within(n, budget int) bool { return budget == schema.Unlimited || n <= budget }

// Settle records the outcome of the job's last attempt in the job: budgets,
// backoff, and whether the job is over. The attempt already has its outcome.
func Settle(j *state.Job, now time.Time) {
	settle(j, now)
	EndRun(j, now)
}

// EndRun records that a run of a job with a schedule has ended if the job has: it waits for
// its next run then.
func EndRun(j *state.Job, now time.Time) {
	if j.Scheduled == nil || j.Spec.Schedule == nil || j.Status != schema.JobSucceeded && j.Status != schema.JobFailed {
		return
	}
	runs := *j.Scheduled
	runs.Outcome, runs.Reason, runs.Ended, runs.EndedAt = j.Status, j.Reason, runs.Run, now
	j.Scheduled = &runs
	j.Status, j.Ready, j.RetryAt = schema.JobScheduled, false, time.Time{}
	if runs.Outcome == schema.JobFailed && runs.Run > 0 {
		j.Reason = fmt.Sprintf("run %d %s: %s", runs.Run, runs.Outcome, j.Reason)
	}
}

func settle(j *state.Job, now time.Time) {
	a := j.Last()
	j.Ready = false
	j.RetryAt = time.Time{}
	if !a.ReadyAt.IsZero() && a.EndedAt.Sub(a.ReadyAt) >= SteadyAfter {
		j.Streak = 0
	}
	retries := j.Spec.Retries
	switch a.Outcome {
	case schema.TaskSucceeded:
		if !retries.OnSuccess {
			j.Status, j.Reason = schema.JobSucceeded, ""
			return
		}
		j.Failures++ // a restart is a restart: the budget is of either kind
		if !Within(j.Failures, retries.Failure) {
			j.Status, j.Reason = schema.JobSucceeded, "restart budget spent"
			return
		}
		retrySoon(j, now)
	case schema.TaskFailed:
		j.Failures++
		if !Within(j.Failures, retries.Failure) || isFinal(a) {
			j.Status, j.Reason = schema.JobFailed, a.Reason
			return
		}
		retrySoon(j, now)
	case schema.TaskPreempted, schema.TaskWorkerFailed:
		if !j.YieldsTo.IsZero() && a.StopGeneration != 0 {
			return // of no one's fault, see victim.go
		}
		settleLoss(j, now)
	case schema.TaskExitUnknown:
		if !j.YieldsTo.IsZero() && a.StopGeneration != 0 {
			return
		}
		settleUnknown(j, now)
	case schema.TaskUnschedulable, schema.TaskKilled:
		if j.YieldsTo.Kind == schema.KindNamespace && a.StopGeneration != 0 {
			return // for a budget of money, see plan/lifecycle/money.go
		}
		// Not the job's doing, so no budget; but whatever does it may go on.
		// Where it was us, for a new spec, the job starts over without this.
		retryLater(j, now)
	case schema.TaskPending, schema.TaskAssigned, schema.TaskBuilding, schema.TaskRunning:
	}
}

// isFinal reports whether a task of the attempt failed in a way in which each further
// attempt would: something is not installed, or it states that it has failed for good.
func isFinal(a *state.Attempt) bool {
	return slices.ContainsFunc(a.Tasks, func(t state.Task) bool {
		return t.State == schema.TaskFailed && t.Termination != nil && t.Termination.Cause.Permanent()
	})
}

func retryLater(j *state.Job, now time.Time) {
	j.Streak++
	j.RetryAt = now.Add(Backoff(j.Streak))
}

// retrySoon retries the first attempt in a row at once: a program that crashed
// once is most likely needed, and only one that goes on crashing is a loop.
func retrySoon(j *state.Job, now time.Time) {
	j.Streak++
	j.RetryAt = now.Add(Backoff(j.Streak - 1))
}

// settleUnknown counts an end whose exit status is not known for itself: whether
// the program or its host is to blame is not known, so it spends the budget of
// neither. As many are allowed as losses are.
func settleUnknown(j *state.Job, now time.Time) {
	retrySoon(j, now)
	if !anyStarted(j.Last()) {
		return
	}
	j.UnknownEnds++
	if !Within(j.UnknownEnds, j.Spec.Retries.Preemption) {
		j.Status = schema.JobFailed
		j.Reason = "no more ends with an unknown exit status are allowed: " + j.Last().Reason
	}
}

func anyStarted(a *state.Attempt) bool {
	return slices.ContainsFunc(a.Tasks, func(t state.Task) bool { return t.Started })
}

// settleLoss counts a preemption or a lost worker: never as a failure, and not
// at all where no task had started. The first one in a row is retried at once.
func settleLoss(j *state.Job, now time.Time) {
	a := j.Last()
	retrySoon(j, now)
	if !anyStarted(a) {
		return
	}
	j.Preemptions++
	if !Within(j.Preemptions, j.Spec.Retries.Preemption) {
		j.Status = schema.JobFailed
		j.Reason = "preemption budget spent: " + a.Reason
		a.Outcome = schema.TaskPreempted
	}
}
